"""Small programs with data-dependent branches, from a grammar.

A program is a module with `forward(x, y, n, flag)`. The grammar favours what a fix can be made of (elementwise arms,
tests of whole reductions) and mixes in, a little everywhere, what makes a fix wrong: other dtypes and shapes, aliases
and views, in-place changes, effects, random numbers, exceptions, Python values.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

DTYPES = ("float32", "float16", "float64", "int64", "bool")
#: The width of `self.lin`, and of most inputs.
WIDTH = 3

FRAME = """\
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, call=None):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.call = call
        self.count = 0
        self.last = None
        self.register_buffer("state", torch.arange(3.0))
        self.kept = self.state

    {decorator}def forward(self, {parameters}){returns}:
{body}
"""


@dataclass(frozen=True)
class Program:
    """The source, the dtypes of `x` and `y`, and a seed for their values."""

    source: str
    dtypes: tuple[str, str]
    seed: int

    def __repr__(self) -> str:
        return f"Program of {self.dtypes}, seed {self.seed}:\n{self.source}"


def _rarely(draw: DrawFn, percent: int) -> bool:
    return draw(st.integers(0, 99)) >= 100 - percent


def _one(draw: DrawFn, *choices: str) -> str:
    return draw(st.sampled_from(choices))


class _Scope:
    """The names that hold tensors here, a supply of new ones, and the tensor that a branch is about."""

    def __init__(self, names: list[str], subject: str = "") -> None:
        self.names = names
        self.subject = subject
        self.made = 0
        #: What a branch has assigned to last.
        self.merged = ""

    def fresh(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def any(self, draw: DrawFn) -> str:
        """Mostly the subject: only of one tensor's functions is it known that they have one shape and one dtype."""
        if self.subject in self.names and not _rarely(draw, 7):
            return self.subject
        return _one(draw, *self.names)


def _number(draw: DrawFn) -> str:
    return _one(draw, "0", "1", "2.0", "0.5", "-1.0", "1e4")


def _usual(draw: DrawFn, name: str, other: str) -> str:
    """A value of the dtype and the shape of the tensor `name`, in most cases."""
    return _one(
        draw,
        f"torch.clamp({name}, min=-1, max=1)",
        f"{name}.clamp(-2.0, 2.0)",
        f"torch.relu({name})",
        f"F.relu({name})",
        f"{name} * 2",
        f"{name} * 0.5",
        f"{name} + 1",
        f"{name} - 1.5",
        f"1 - {name}",
        f"-{name}",
        f"{name}.abs()",
        f"{name} + {other}",
        f"{name} * {other}",
        f"torch.zeros_like({name})",
        f"torch.nan_to_num({name})",
        f"{name}.clone()",
        f"torch.maximum({name}, {other})",
        f"({name} + 1).tanh()",
        name,
        other,
    )


def _unusual(draw: DrawFn, name: str, other: str) -> str:
    """A value that differs in dtype, shape, purity, totality or gradient."""
    return _one(
        draw,
        f"{name} / 2",
        f"{name} / {other}",
        f"{name} // 2",
        f"{name}.sqrt()",
        f"torch.log({name})",
        f"{name}.exp()",
        f"{name} ** 2",
        f"{name}.norm() * {name}",
        f"{name}.sum()",
        f"{name}.mean()",
        f"{name}.sum(dim=-1, keepdim=True)",
        f"{name}.reshape(-1)",
        f"{name}.view(-1)",
        f"{name}[0]",
        f"{name}[:1]",
        f"{name}[..., None]",
        f"{name}[{name} > 0]",
        f"torch.cat([{name}, {other}])",
        f"{name}.to(torch.float16)",
        f"{name}.float()",
        f"{name}.double()",
        f"{name}.to({other}.dtype)",
        f"{name}.detach()",
        f"{name}.contiguous()",
        f"{name}.view_as({name})",
        f"{name}.expand_as({other})",
        f"torch.ones({WIDTH})",
        f"torch.full_like({name}, 7)",
        f"torch.full_like({name}, 0.5)",
        f"torch.zeros_like({name}, dtype=torch.float32)",
        f"torch.zeros({name}.shape)",
        "torch.tensor(1.0)",
        f"{name} > 0",
        f"torch.randn_like({name})",
        f"F.dropout({name}, 0.5)",
        f"self.lin({name})",
        f"{name} * self.scale",
        f"{name} + self.state",
        "self.state",
        "self.kept",
        f"self.call({name})",
        f"{name}.add_(1)",
        f"{name}.mul_({other})",
        f"torch.add({name}, 1, out={other})",
        f"torch.where({name} > 0, {name}, {other})",
        f"{name}.masked_fill({name} > 0, 0)",
        f"{name}.sum().item()",
        f"int({name}.numel())",
        f"max({name}.tolist())",
        f"({name}, {other})",
        f"[{name}]",
        "None",
        "1.0",
        "2",
        "n",
        "True",
    )


def _value(draw: DrawFn, scope: _Scope, odd: int = 6) -> str:
    name, other = scope.any(draw), scope.any(draw)
    value = _unusual(draw, name, other) if _rarely(draw, odd) else _usual(draw, name, other)
    if _rarely(draw, 8):
        second = _usual(draw, name, other)
        value = f"{value} {_one(draw, '+', '*', '-')} {second}"
    if _rarely(draw, 2):
        value = f"({value} if {_test(draw, scope, 2)} else {_usual(draw, name, other)})"
    return value


def _test(draw: DrawFn, scope: _Scope, depth: int = 0) -> str:
    """A predicate: tensor parts, static parts, and combinations of them in any position."""
    kind = draw(st.integers(0, 99))
    if depth < 2 and kind >= 86:
        first, second = _test(draw, scope, depth + 1), _test(draw, scope, depth + 1)
        return _one(
            draw,
            f"({first} and {second})",
            f"({first} or {second})",
            f"not ({first})",
            f"({_static(draw, scope)} and {first})",
            f"({first} and {_static(draw, scope)})",
            f"(({first} and {second}) or {_static(draw, scope)})",
        )
    if kind >= 82:
        return _static(draw, scope)
    if kind >= 75:
        return _other_test(draw, scope)
    name, other = scope.any(draw), scope.any(draw)
    return _one(
        draw,
        f"{name}.sum() > {_number(draw)}",
        f"torch.sum({name}) <= {_number(draw)}",
        f"{name}.max() > {_number(draw)}",
        f"{name}.abs().max() >= 2",
        f"{name}.mean() < {other}.mean()",
        f"torch.isnan({name}).any()",
        f"not torch.isfinite({name}).all()",
        f"torch.isinf({name}).any()",
        f"({name} > 0).all()",
        f"torch.any({name} < 0)",
        f"{name}.any()",
        f"{name}.all()",
        f"{name}.sum() == 0",
        f"{name}.sum().item() > 0",
        f"{name}.abs().max().item() < 2",
    )


def _other_test(draw: DrawFn, scope: _Scope) -> str:
    name, other = scope.any(draw), scope.any(draw)
    return _one(
        draw,
        f"float({name}.sum()) > 0",
        f"bool(({name} > 0).any())",
        f"{name}.sum()",
        f"{name}[0] > 0",
        f"{name} > 0",
        f"0 < {name}.sum() < 3",
        f"torch.equal({name}, {other})",
        f"torch.allclose({name}, {other})",
        f"{name}.sum() in (0, 1)",
        f"{name}.sum() is None",
        f"{name}.sum(dim=-1) > 0",
        f"{name}.max(dim=-1).values.sum() > 0",
        f"{name}.norm() > 1",
        f"1 / {name}.sum() > 0",
        f"{name}.flatten()[0] > 0",
        f"{name}.mean() > self.state.sum()",
        f"self.call({name}).sum() > 0",
        f"self.state.sum() > {_number(draw)}",
        "torch.rand(()) > 0.5",
        f"{name}.add_(1).sum() > 0",
        f"({name}.sum() > 0).item()",
        f"{name}.isnan().any() | ({name}.sum() > 0)",
        f"{name}.sum() + n > 0",
    )


def _static(draw: DrawFn, scope: _Scope) -> str:
    name = scope.any(draw)
    return _one(
        draw,
        "n > 1",
        "flag",
        "self.training",
        f"{name}.dim() > 1",
        f"{name}.shape[0] > 1",
        f"{name}.dtype == torch.float16",
        f"{name}.is_floating_point()",
        f"{name} is not None",
        f"isinstance({name}, torch.Tensor)",
        "torch.is_grad_enabled()",
        "self.last is None",
        "self.count > 1",
        f"{name}.numel() > 0",
    )


def _targets(draw: DrawFn, scope: _Scope) -> list[str]:
    """What both arms assign to: mostly names that are there already."""
    count = draw(st.sampled_from((1, 1, 1, 1, 2, 2, 3)))
    found: list[str] = []
    for _ in range(count):
        if _rarely(draw, 6):
            target = _one(
                draw,
                "self.last",
                "self.last",
                "self.state",
                "self.count",
                f"{scope.any(draw)}[0]",
                f"{scope.any(draw)}[...]",
                "n",
            )
        else:
            target = scope.fresh() if _rarely(draw, 35) else scope.any(draw)
        if target not in found:
            found.append(target)
    return found


def _assign(draw: DrawFn, scope: _Scope, target: str) -> list[str]:
    value = _value(draw, scope)
    if target.startswith("self.state") and _rarely(draw, 30):
        return [f"self.state.copy_({value})"]
    if target in scope.names and _rarely(draw, 12):
        return [f"{target} {_one(draw, '+=', '*=', '-=')} {_usual(draw, scope.any(draw), scope.any(draw))}"]
    if "." not in target and "[" not in target and _rarely(draw, 6):
        return [f"{target}: torch.Tensor = {value}"]
    if _rarely(draw, 5):
        other = scope.any(draw)
        return [f"{target}, {other} = {value}, {_value(draw, scope)}"] if target != other else [f"{target} = {value}"]
    if _rarely(draw, 3):
        return [f"{target} = {scope.any(draw)} = {value}"]
    return [f"{target} = {value}"]


def _effect(draw: DrawFn, scope: _Scope) -> list[str]:
    """A statement that does something else than assigning a value."""
    name, other = scope.any(draw), scope.any(draw)
    return [
        _one(
            draw,
            f"print({name}.shape)",
            f"print({name}.sum())",
            f"{name}.add_(1)",
            f"{name}.mul_(0)",
            f"{name}[...] = 0",
            f"{name} += 1",
            "self.count += 1",
            "self.state += 1",
            f"self.last = {name}",
            f"self.call({name})",
            "torch.manual_seed(1)",
            f"assert {name} is not None",
            f'raise ValueError(f"bad {{{name}.shape}}")',
            f"del {name}",
            f"{name} = {other}",
            f"self.state.copy_({name}.sum())",
            "pass",
        )
    ]


def _arm(draw: DrawFn, scope: _Scope, targets: list[str], depth: int) -> list[str]:
    lines: list[str] = []
    inner = _Scope(list(scope.names), scope.subject)
    inner.made = scope.made + 10 * (depth + 1)
    if _rarely(draw, 25):
        helper = inner.fresh()
        lines.append(f"{helper} = {_value(draw, scope, 12)}")
        inner.names.append(helper)
    for target in targets:
        if not _rarely(draw, 5):
            lines += _assign(draw, inner, target)
        if target.isidentifier() and target != "n" and target not in inner.names:
            inner.names.append(target)
    if _rarely(draw, 5):
        lines.insert(draw(st.integers(0, len(lines))), _effect(draw, inner)[0])
    if depth < 2 and _rarely(draw, 10):
        lines += _branch(draw, inner, depth + 1, targets)
    return lines or ["pass"]


def _branch(draw: DrawFn, scope: _Scope, depth: int = 0, given: list[str] | None = None) -> list[str]:
    """An `if` statement, or a conditional expression, over tensor data."""
    if depth == 0:
        scope.subject = _one(draw, *scope.names, *[scope.names[-1]] * 12)
    if depth == 0 and _rarely(draw, 15):
        target = scope.fresh() if _rarely(draw, 50) else scope.any(draw)
        first, test, second = _value(draw, scope), _test(draw, scope), _value(draw, scope)
        _bound(scope, [target])
        scope.merged = target
        return [f"{target} = {first} if {test} else {second}"]
    targets = given or _targets(draw, scope)
    lines: list[str] = []
    test = _test(draw, scope)
    if _rarely(draw, 15):
        lines.append(f"held = {test}")
        test = _one(draw, "held", "held", "not held", f"held and {_test(draw, scope, 2)}")
        if _rarely(draw, 10):
            lines += _effect(draw, scope)
    returns = depth == 0 and _rarely(draw, 12)
    lines += [f"if {test}:", *_indented(_arm(draw, scope, targets, depth))]
    if returns:
        lines.append(f"    return {_value(draw, scope, 10)}")
    if _rarely(draw, 12):
        lines += [f"elif {_test(draw, scope)}:", *_indented(_arm(draw, scope, targets, depth))]
    new = [t for t in targets if t.isidentifier() and t not in scope.names]
    if new or _rarely(draw, 50):
        lines += ["else:", *_indented(_arm(draw, scope, targets, depth))]
        if returns and _rarely(draw, 50):
            lines.append(f"    return {_value(draw, scope, 10)}")
    _bound(scope, targets)
    scope.merged = targets[-1]
    return lines


def _bound(scope: _Scope, targets: list[str]) -> None:
    for target in targets:
        if target.isidentifier() and target != "n" and target not in scope.names:
            scope.names.append(target)


def _wrapped(draw: DrawFn, lines: list[str]) -> list[str]:
    """A branch in what may stand around it."""
    kind = draw(st.integers(0, 99))
    if kind < 86:
        return lines
    if kind < 91:
        return ["with torch.no_grad():", *_indented(lines)]
    if kind < 94:
        return ["for _ in range(2):", *_indented(lines)]
    if kind < 96:
        return [
            "try:",
            *_indented(lines),
            "except (RuntimeError, IndexError, ValueError) as error:",
            "    print(error)",
        ]
    return [f"if {_one(draw, 'flag', 'n > 1', 'self.training')}:", *_indented(lines)]


def _before(draw: DrawFn, scope: _Scope) -> list[str]:
    if _rarely(draw, 12):
        return _effect(draw, scope)
    made = scope.fresh()
    name = scope.any(draw)
    value = _one(
        draw,
        f"{name} + 1",
        f"{name} * 2",
        f"F.relu({name})",
        *[f"self.lin({name})", f"F.relu(self.lin({name}))", f"{name}.float() * 2", f"{name}.to(torch.float16) + 1"] * 8,
        f"{name}.tanh()",
        f"{name}.float()",
        f"{name}.to(torch.float16)",
        name,
        f"{name}.view(-1)",
        f"{name}[...]",
        f"{name}.clone()",
        f"{name}.detach()",
    )
    scope.names.append(made)
    return [f"{made} = {value}"]


def _after(draw: DrawFn, scope: _Scope) -> list[str]:
    """Uses of what was merged."""
    name = scope.any(draw)
    kind = draw(st.integers(0, 9))
    if kind >= 7:
        return _effect(draw, scope)
    return [f"{name} = {_usual(draw, name, scope.any(draw))}"]


def _result(draw: DrawFn, scope: _Scope) -> str:
    name, other = scope.any(draw), scope.any(draw)
    last = scope.merged if scope.merged in scope.names else scope.names[-1]
    return _one(
        draw,
        last,
        last,
        f"{last} * 2",
        f"{last} + {other}",
        f"({last}, {name})",
        f"{{'a': {last}, 'b': {other}}}",
        f"({last} is {name}, {last})",
        name,
        last,
        f"({last}, self.state)",
    )


@st.composite
def programs(draw: DrawFn) -> Program:
    """A program and what it is called with."""
    scope = _Scope(["x", "y"])
    body: list[str] = []
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 1, 1, 1, 2)))):
        body += _before(draw, scope)
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        known = len(scope.names)
        lines = _branch(draw, scope)
        wrapped = _wrapped(draw, lines)
        body += wrapped
        if wrapped is not lines and _rarely(draw, 50):
            del scope.names[known:]
    for _ in range(draw(st.sampled_from((0, 0, 1)))):
        body += _after(draw, scope)
    if not _rarely(draw, 5):
        body.append(f"return {_result(draw, scope)}")
    dtype = _one(draw, *["float32"] * 5, *DTYPES)
    second = _one(draw, *[dtype] * 6, *DTYPES)
    source = FRAME.format(
        decorator=_one(draw, *[""] * 9, "@torch.no_grad()\n    "),
        parameters=_one(
            draw,
            *["x: torch.Tensor, y: torch.Tensor, n: int, flag: bool"] * 5,
            "x, y, n, flag",
            "x: torch.Tensor, y: torch.Tensor | None, n, flag=False",
        ),
        returns=_one(draw, "", " -> torch.Tensor"),
        body="\n".join(_indented(_indented(body))),
    )
    return Program(source, (dtype, second), draw(st.integers(0, 999)))


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
