"""Messages that stay heard in compiled code: what a fixed program imports.

    deferred(print)("loss", loss)                      # was: print("loss", loss)
    deferred(logger).warning("n is %d", n)             # was: logger.warning("n is %d", n)
    if alarm := when(torch.isnan(x).any()):            # was: if torch.isnan(x).any():
        alarm(logger).warning("nan in x")              #          logger.warning("nan in x")
    deferred(print)("loss", item(loss))                # was: print("loss", loss.item())
    if alarm := unless(mask.all()):                    # was: if not mask.all():
        alarm(fail)(ValueError, "masked")              #          raise ValueError("masked")

Eagerly these are the calls that they were: `deferred(f)` is `f`. While `torch.compile` or `torch.export`
traces, the call becomes one ordered, effectful custom op, which makes the real call each time the graph runs.
The file depends on torch and the standard library alone, works under any module name and may be copied into a
package, several times in a process.

What holds, in compiled code
- The same text, as often, in the order of the program, on the target as it is at that moment (a replaced
  method, a redirected stream, a filter or a level set later count). Tensors show the values that they had at
  the call.
- `LogRecord.pathname/lineno/funcName` and a warning's file, line and registry are those of the source line,
  for any `stacklevel` within the traced frames, and beyond them where the compiled frame is on the stack (it
  is not in backward passes and in exported programs: there the frames below the traced ones are torch's own).
- Integers and floats stay symbolic: a message neither specialises a dynamic shape nor costs a recompile.
- What cannot be carried (an object that is neither a constant, a number, a tensor nor a plain container of
  those; a logger that `logging.getLogger` does not know; an unknown target) is called directly, which is the
  graph break of the plain call.

What does not
- The `grad_fn=...` part of a printed tensor; repeats where `torch.utils.checkpoint` runs a function twice.
- Under `torch.func.grad` and its kin the plain tensor is printed, not the wrapper that eager code shows.
  Under `torch.vmap` the call is made once, with the batched tensor in the form that eager code prints; a
  batched predicate raises, as it does eagerly.
- Two loggers at one source line (one per instance, say) cost a compilation each: Dynamo knows a logger by its
  id.
- Inductor does not put a graph with an effectful op into its cache on disk (2.13): the next process compiles
  it again. Levels and filters are looked at when the graph runs, so a silent message has its op, too.
- `stack_info=True` shows the traced frames and then torch's. Nothing is said under `FakeTensorMode`.
- A method named `*_once` with constant arguments speaks while tracing, and leaves no op in the graph (unless
  a deferred call precedes it there): a program that was exported does not say it again.
- TorchScript cannot compile these calls. `when` must not guard anything but deferred calls: its body always
  runs.

torch 2.11, 2.13 and 2.14 have the mechanism; 2.13 on a CPU is what this file is tested on. On a GPU the op is
marked as unfit for CUDA graphs, and a message that shows or tests a tensor waits for the device, as printing it
does. Without the mechanism, `deferred`, `when`, `formatted` and `percent` have their eager meaning everywhere.
"""

from __future__ import annotations

import builtins
import functools
import json
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import torch

__all__ = ["deferred", "fail", "fail_from", "formatted", "item", "late", "percent", "tolist", "unless", "when"]

# The number changes with the form of the payload: copies of this file with equal numbers share one op.
_NAMESPACE, _OP = "graphmend", "call_v2"

# Functions of torch that look at a tensor and raise; Dynamo breaks at them (2.13).
_CHECKS = ("_check_tensor_all", "_check_tensor_all_with", "_assert")
# Functions of torch that read tensor data and give a Python bool.
_QUESTIONS = ("equal", "allclose", "is_nonzero")
_LOGGING = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log")
# Methods of a logger that return something, or configure it, are no messages: they are used as they are.
_NOT_MESSAGES = frozenset(
    name
    for name in dir(logging.root)
    if name not in _LOGGING and getattr(getattr(logging.root, name), "__module__", "logging") == "logging"
)
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_CONSTANTS = (
    str, bool, float, complex, bytes, type(None), type(Ellipsis),
    torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")
_HERE = (lambda: None).__code__.co_filename


def deferred(target: Any) -> Any:
    """`target` itself, eagerly; while tracing, a stand-in whose calls are made when the graph runs.

    Carried: `print`, `warnings.warn`, the functions of `logging`, `sys.stdout.write`, `sys.stderr.write`,
    the methods of loggers that `logging.getLogger` knows, `fail`, and the checks of torch that look at tensors
    (`torch._check_tensor_all`, `torch._assert`). The result of a deferred call is None.
    """
    if not _traces():
        return target
    return _handle(target, ())


def when(predicate: Any, outer: Any = None) -> Any:
    """The test of an `if` that guards messages only. In the body, the bound name takes the place of `deferred`.

    Eagerly `deferred` if `predicate` is true, else False. While tracing, a tensor gives an object that is
    true, and whose handles look at the tensor when the graph runs. A test inside the body of another one
    passes the name that the outer one bound as `outer`.
    """
    if _traces():
        if isinstance(predicate, torch.Tensor) and predicate.device.type != "meta":
            return _Alarm((*_predicates(outer), predicate))
        if isinstance(predicate, _Late):
            return _Alarm((*_predicates(outer), predicate))
    if not predicate:
        return False
    return deferred if outer is None else outer


def unless(predicate: Any, outer: Any = None) -> Any:
    """`when(not predicate)`, for a predicate that is a tensor while tracing."""
    if _traces():
        if isinstance(predicate, torch.Tensor) and predicate.device.type != "meta":
            return when(torch.logical_not(predicate), outer)
        if isinstance(predicate, _Late):
            return when(_Late(predicate._gm_name, predicate._gm_args, predicate._gm_kwargs, True), outer)
    return when(not predicate, outer)


def late(question: Any) -> Any:
    """`torch.equal`, `torch.allclose` or `torch.is_nonzero` for the test of `when` or `unless`.

    Eagerly `question` itself; while tracing, one that is asked when the graph runs.
    """
    if _traces():
        for name in _QUESTIONS:
            if question is getattr(torch, name):
                return _Question(name)
    return question


def fail(exception: Any, /, *args: Any, **kwargs: Any) -> None:
    """Raise `exception(*args, **kwargs)`: what stands for a `raise` under `when` or `unless`."""
    raise exception(*args, **kwargs) if args or kwargs else exception


def fail_from(cause: Any, exception: Any, /, *args: Any, **kwargs: Any) -> None:
    """Raise `exception(*args, **kwargs) from cause`, under `when` or `unless`. The cause is None or a class."""
    raise (exception(*args, **kwargs) if args or kwargs else exception) from cause


def item(tensor: Any, /) -> Any:
    """`tensor.item()`, as an argument of a deferred call: read when the graph runs."""
    return _Reading(tensor, "item") if _is_traced(tensor) else tensor.item()


def tolist(tensor: Any, /) -> Any:
    """`tensor.tolist()`, as an argument of a deferred call: read when the graph runs."""
    return _Reading(tensor, "tolist") if _is_traced(tensor) else tensor.tolist()


def formatted(template: str, /, *values: Any, **named: Any) -> Any:
    """A text as `str.format` makes it, for a deferred call: if traced, made when the graph runs."""
    if not _traces():
        return template.format(*values, **named)
    return _Text(template, values, named)


def percent(template: str, values: Any, /) -> Any:
    """A text as the operator `%` makes it, for a deferred call: if traced, made when the graph runs."""
    if not _traces():
        return template % values
    return _Text(template, values, None)


# --- while tracing: Dynamo inlines what follows, so it is written in the Python that Dynamo knows ---


def _constant(function: Callable[..., Any]) -> Callable[..., Any]:
    """Dynamo calls `function` while it traces and takes the result for a constant.

    This is what `torch.compiler.assume_constant_result` does; that one imports torch._dynamo (1.5 s).
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def _traces() -> bool:
    return _EMIT is not None and torch.compiler.is_compiling()


def _is_traced(value: Any) -> bool:
    return _traces() and isinstance(value, torch.Tensor) and value.device.type != "meta"


def _handle(target: Any, predicates: tuple[Any, ...]) -> Any:
    kind, name = _address(target)
    return _Handle(target, kind, name, "", predicates)


def _predicates(outer: Any) -> tuple[Any, ...]:
    return outer._gm_predicates if isinstance(outer, _Alarm) else ()


def _address(target: Any) -> tuple[str, str]:
    """How the target is found when the graph runs: a kind and a name; an empty kind where it cannot be."""
    if isinstance(target, logging.Logger):
        name = _logger_name(id(target))
        return ("", "") if name is None else ("logger", name)
    if type(target) is types.BuiltinFunctionType:
        builtin = _builtin()
        return _stream_address(target.__self__) if builtin == "write" else (builtin, "")
    if isinstance(target, types.FunctionType):
        if target is fail:
            return ("fail", "")
        if target is fail_from:
            return ("fail_from", "")
        if target is builtins.print:
            return ("print", "")
        if target is warnings.warn:
            return ("warn", "")
        for name in _CHECKS:
            if target is getattr(torch, name, None):
                return ("check", name)
        for name in _LOGGING:
            if target is getattr(logging, name, None):
                return ("logging", name)
    if isinstance(target, types.MethodType) and target.__name__ == "write":
        return _stream_address(target.__self__)
    return ("", "")


def _stream_address(stream: Any) -> tuple[str, str]:
    name = _stream_name(stream)
    return ("stream", name) if name else ("", "")


def _stream_name(stream: Any) -> str:
    read: str = _stream_read()
    if read:
        return read
    # By number: Dynamo's `is` does not see that `sys.stdout.write.__self__` is `sys.stdout`.
    if id(stream) == id(sys.stdout):
        return "stdout"
    return "stderr" if id(stream) == id(sys.stderr) else ""


class _Handle:
    """A target while it is traced. The names of its attributes stay clear of the target's."""

    def __init__(self, target: Any, kind: str, name: str, method: str, predicates: tuple[Any, ...]) -> None:
        self._gm_target = target
        self._gm_kind = kind
        self._gm_name = name
        self._gm_method = method
        self._gm_predicates = predicates

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_gm_", "__")):
            raise AttributeError(name)  # of a handle that is not made yet: Dynamo and copy ask
        if self._gm_method or name in _NOT_MESSAGES:
            return getattr(self._gm_target, name)
        return _Handle(self._gm_target, self._gm_kind, self._gm_name, name, self._gm_predicates)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not _traces():
            return _call_late(self, args, kwargs)
        # Nothing that stands after it is to be traced.
        certain = self._gm_kind in ("fail", "fail_from") and len(self._gm_predicates) == 0
        if not certain and _carried(self, args, kwargs):
            return None
        if self._gm_predicates and not all(bool(p) for p in self._gm_predicates):
            return None
        target = getattr(self._gm_target, self._gm_method) if self._gm_method else self._gm_target
        return target(*[_resolved(a) for a in args], **{k: _resolved(v) for k, v in kwargs.items()})


class _Alarm:
    """A tensor predicate while it is traced: true for Python, looked at when the graph runs."""

    def __init__(self, predicates: tuple[Any, ...]) -> None:
        self._gm_predicates = predicates

    def __call__(self, target: Any) -> Any:
        return _handle(target, self._gm_predicates) if _traces() else _Handle(target, "", "", "", self._gm_predicates)


class _Question:
    """A function that reads tensor data, while it is traced."""

    def __init__(self, name: str) -> None:
        self._gm_name = name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._gm_name == "equal" and len(args) == 2 and _shapes_differ(*args):
            return False  # known now, and what follows may not even be traceable
        return _Late(self._gm_name, args, kwargs, False)


def _shapes_differ(first: Any, second: Any) -> bool:
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return False
    if first.dim() != second.dim():
        return True
    shapes = torch.fx.experimental.symbolic_shapes
    return any(shapes.guard_or_false(a != b) for a, b in zip(first.shape, second.shape, strict=True))


class _Late:
    """The answer of such a function: asked when the graph runs, or at once if Python wants to know."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], negated: bool) -> None:
        self._gm_name = name
        self._gm_args = args
        self._gm_kwargs = kwargs
        self._gm_negated = negated

    def __bool__(self) -> bool:
        answer = getattr(torch, self._gm_name)(*self._gm_args, **self._gm_kwargs)
        return bool(answer) is not self._gm_negated


class _Reading:
    """The data of a tensor, as Python is to have it: `tensor.item()` or `tensor.tolist()`, when the graph runs."""

    def __init__(self, tensor: Any, method: str) -> None:
        self._gm_tensor = tensor
        self._gm_method = method

    def read(self) -> Any:
        return getattr(self._gm_tensor, self._gm_method)()


class _Text:
    """A text that is formatted when the graph runs, or at once if anything but a deferred call wants it.

    Inside an f-string Dynamo formats an object before its attributes are set: that is an error, never a wrong
    text.
    """

    def __init__(self, template: str, values: Any, named: dict[str, Any] | None) -> None:
        self._gm_template = template
        self._gm_values = values
        self._gm_named = named

    def __str__(self) -> str:
        if self._gm_named is None:
            return self._gm_template % _resolved(self._gm_values)  # type: ignore[no-any-return]
        values = [_resolved(v) for v in self._gm_values]
        return self._gm_template.format(*values, **{k: _resolved(v) for k, v in self._gm_named.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_gm_"):
            raise TypeError("the result of formatted() or percent() may only be an argument of a deferred call")
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(str(self), name)

    def __repr__(self) -> str:
        return repr(str(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        return str(self) == (str(other) if isinstance(other, _Text) else other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __len__(self) -> int:
        return len(str(self))

    def __iter__(self) -> Iterator[str]:
        return iter(str(self))

    def __contains__(self, part: str) -> bool:
        return part in str(self)

    def __getitem__(self, key: Any) -> str:
        return str(self)[key]

    def __add__(self, other: Any) -> str:
        return str(self) + str(other)

    def __radd__(self, other: Any) -> str:
        return str(other) + str(self)

    def __mod__(self, values: Any) -> str:
        return str(self) % values  # type: ignore[no-any-return]


def _resolved(value: Any) -> Any:
    """`value` with texts formatted, for a call that is made directly."""
    if isinstance(value, _Text):
        return str(value)
    if isinstance(value, _Reading):
        return value.read()
    if type(value) is tuple:
        return tuple([_resolved(item) for item in value])
    if type(value) is list:
        return [_resolved(item) for item in value]
    return value


def _carried(handle: _Handle, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Record the call as an op, or make it now if that is the same; False if it cannot be carried."""
    if not handle._gm_kind or (handle._gm_method and handle._gm_kind != "logger"):
        return False
    if _handles_exception(handle, kwargs):
        return False
    tensors: list[Any] = []
    ints: list[Any] = []
    predicates: list[Any] = []
    questions: list[Any] = []
    for predicate in handle._gm_predicates:
        if isinstance(predicate, _Late):
            asked = _carry_all(predicate._gm_args, tensors, ints)
            named = _carry_keywords("", predicate._gm_kwargs, tensors, ints)
            if asked is None or named is None:
                return False
            questions.append((predicate._gm_name, predicate._gm_negated, asked, named))
        elif type(predicate) not in _PLAIN_TENSORS and torch.compiler.is_dynamo_compiling():
            return False
        else:
            predicates.append(_detached(predicate))
    positional = _carry_all(args, tensors, ints)
    keywords = _carry_keywords(handle._gm_kind, kwargs, tensors, ints)
    if positional is None or keywords is None:
        return False
    payload = _payload(handle._gm_kind, handle._gm_name, handle._gm_method, positional, keywords, tuple(questions))
    if payload is None:
        return False
    constant = not tensors and not ints and len(handle._gm_predicates) == 0
    if constant and handle._gm_method.endswith("_once") and _spoken_now(payload):
        return True
    if torch.compiler.is_dynamo_compiling():
        _EMIT(payload, predicates, tensors, ints)
        _follow_previous()
    else:
        _keep_token(_EMIT(payload, predicates, [*tensors, *_kept_token()], ints))
    return True


def _handles_exception(handle: _Handle, kwargs: dict[str, Any]) -> bool:
    """Whether the message may show an exception that is being handled: it is not, when the graph runs."""
    if handle._gm_kind not in ("logger", "logging"):
        return False
    method = handle._gm_method or handle._gm_name
    shows = method not in _LOGGING or method == "exception" or bool(kwargs.get("exc_info"))
    return shows and sys.exc_info()[0] is not None


def _carry_keywords(kind: str, kwargs: dict[str, Any], tensors: list[Any], ints: list[Any]) -> tuple[Any, ...] | None:
    """The keyword arguments taken apart, in order; None where one cannot be carried."""
    specs: list[Any] = []
    for key, value in kwargs.items():
        spec = None
        if kind == "print" and key == "file" and value is not None:
            name = _stream_name(value)
            spec = ("stream", name) if name else None
        else:
            spec = _carry(value, tensors, ints)
        if spec is None:
            return None
        specs.append((key, spec))
    return tuple(specs)


def _carry_all(values: Any, tensors: list[Any], ints: list[Any]) -> tuple[Any, ...] | None:
    specs: list[Any] = []
    for value in values:
        spec = _carry(value, tensors, ints)
        if spec is None:
            return None
        specs.append(spec)
    return tuple(specs)


def _carry(value: Any, tensors: list[Any], ints: list[Any]) -> tuple[Any, ...] | None:
    """How `value` is rebuilt when the graph runs, as nested tuples of constants; None where it cannot be."""
    if isinstance(value, torch.Tensor):
        return _carry_tensor(value, tensors, ints)
    if isinstance(value, _Text):
        return _carry_text(value, tensors, ints)
    if isinstance(value, _Reading):
        spec = _carry_tensor(value._gm_tensor, tensors, ints)
        return None if spec is None else ("reading", value._gm_method, spec)
    kind = type(value)
    if isinstance(value, (bool, torch.SymBool)):
        if _is_static(value):
            return ("constant", True if value else False)  # noqa: SIM210, `bool` would keep it symbolic
        ints.append(torch.sym_ite(value, 1, 0))  # type: ignore[no-untyped-call]
        return ("bool",)
    if kind is int or kind is torch.SymInt:
        if _is_static(value) and not -(2**63) <= value < 2**63:
            return ("constant", value)
        ints.append(value)
        return ("int",)
    if (kind is float or kind is torch.SymFloat) and not _is_static(value):
        # A product of a tensor and a symbolic float is what Inductor keeps symbolic; other ops specialise.
        tensors.append(torch.ones((), dtype=torch.float64, device="cpu") * value)
        return ("float",)
    if kind in _CONSTANTS or isinstance(value, (Enum, type)):
        return ("constant", value)
    return _carry_container(value, kind, tensors, ints)


def _carry_container(value: Any, kind: Any, tensors: list[Any], ints: list[Any]) -> tuple[Any, ...] | None:
    if kind is range:
        items = _carry_all((value.start, value.stop, value.step), tensors, ints)
    elif kind is dict:
        items = _carry_all([item for pair in value.items() for item in pair], tensors, ints)
    elif isinstance(value, (tuple, list)):
        items = _carry_all(value, tensors, ints)
    elif isinstance(value, Warning):
        items = _carry_all(value.args, tensors, ints)
    else:
        return None
    if items is None:
        return None
    if kind is tuple or kind is list or kind is dict or kind is range:
        return (kind.__name__, items)
    if kind is torch.Size:
        return ("size", items)
    return ("instance", kind, items)


def _carry_text(text: _Text, tensors: list[Any], ints: list[Any]) -> tuple[Any, ...] | None:
    if type(text._gm_template) is not str:
        return None
    if text._gm_named is None:
        values = _carry(text._gm_values, tensors, ints)
        return None if values is None else ("percent", text._gm_template, values)
    positional = _carry_all(text._gm_values, tensors, ints)
    named = _carry_keywords("", text._gm_named, tensors, ints)
    if positional is None or named is None:
        return None
    return ("format", text._gm_template, positional, named)


def _carry_tensor(value: Any, tensors: list[Any], ints: list[Any]) -> tuple[Any, ...] | None:
    """A tensor, with what its text shows of autograd; subclasses have texts and dispatch of their own."""
    parameter = isinstance(value, torch.nn.Parameter)
    if torch.compiler.is_dynamo_compiling() and type(value) not in _PLAIN_TENSORS:
        return None
    if value.layout != torch.strided:
        return None
    leaf = bool(value.requires_grad) and value.is_leaf
    if value.device.type == "meta":
        # An op with a meta argument is never run for real, and all that a meta tensor shows is its type and
        # shape.
        ints.extend(value.shape)
        return ("meta", parameter, leaf, value.dtype, len(value.shape))
    tensors.append(_detached(value))
    return ("tensor", parameter, leaf)


def _detached(value: Any) -> Any:
    """The op has no gradient, and functorch (whose tensors do not tell while traced) insists on one where it
    could.
    """
    return value.detach()


def _is_static(value: Any) -> bool:
    """Whether a number is a constant of the trace. Installs no guard."""
    return torch.fx.experimental.symbolic_shapes.has_static_value(value)


# --- called for real while tracing, with constants ---


class _Frame(NamedTuple):
    """A place on the stack. Its globals are found by the two names, so that it can cross processes."""

    filename: str
    line: int
    function: str
    module: str


_GLOBALS: dict[tuple[str, str], dict[str, Any]] = {}


@_constant
def _logger_name(identity: int) -> str | None:
    """Dynamo cannot read `logger.name`; it can read `id(logger)`."""
    for logger in [logging.root, *logging.Logger.manager.loggerDict.values()]:
        if id(logger) == identity and isinstance(logger, logging.Logger):
            return logger.name if logging.getLogger(logger.name) is logger else None
    return None


@_constant
def _builtin() -> str:
    """Which builtin `_address` looks at. Dynamo has no name for a bound one, and does not compare `print` in
    an export.
    """
    if not _translators():
        found = sys._getframe(1).f_locals["target"]
    else:
        variable = _variable(_address.__code__, "target")
        places = (getattr(variable, name, None) for name in ("fn", "value", "descriptor"))
        found = next((place for place in places if place is not None), None)
    if found is builtins.print:
        return "print"
    if found is warnings.warn:
        return "warn"
    return "write" if getattr(found, "__name__", "") == "write" else ""


@_constant
def _stream_read() -> str:
    """The name under which the stream of `_stream_name` was just read from `sys`, if it was.

    A comparison with `sys.stdout` would do, but for its guard on the object: each redirection would cost a
    recompile.
    """
    source: Any = getattr(_variable(_stream_name.__code__, "stream"), "source", None)
    name = getattr(source, "member", None)
    while name in ("__self__", "write"):
        source = source.base
        name = getattr(source, "member", None)
    if name not in ("stdout", "stderr"):
        return ""
    try:
        return name if _translators()[0].output.resolve_source_value(source.base) is sys else ""
    except Exception:
        return ""  # a source that this version of Dynamo cannot read back


def _variable(code: types.CodeType, name: str) -> Any:
    """What Dynamo knows of a local variable of one of the functions above."""
    for translator in _translators():
        if translator.f_code is code:
            variable = translator.symbolic_locals.get(name)
            return variable.realize() if hasattr(variable, "realize") else variable
    return None


@_constant
def _payload(kind: str, name: str, method: str, positional: Any, keywords: Any, questions: Any) -> str | None:
    """The call in one line of JSON that any process can read; None if a constant in it cannot be written
    down.
    """
    try:
        args = [_encode(spec) for spec in positional]
        kwargs = [[key, _encode(spec)] for key, spec in keywords]
        asked = [
            [name_, negated, [_encode(spec) for spec in specs], [[key, _encode(spec)] for key, spec in named]]
            for name_, negated, specs, named in questions
        ]
    except _NotCarried:
        return None
    return json.dumps([kind, name, method, args, kwargs, _traced_frames(), asked], separators=(",", ":"))


@_constant
def _spoken_now(payload: str) -> bool:
    """Make a call that speaks once, while tracing; False where that could differ from what the graph would
    do.
    """
    context = _tracing_context()
    if context is None or hasattr(context, _TOKEN) or _in_subgraph():
        return False
    try:
        _perform(payload, [], [], [])
    except Exception:
        return False  # the op raises it, at the right moment
    return True


@_constant
def _follow_previous() -> None:
    """Give the op just recorded the result of the one before it, as an argument that it does not read.

    Inductor 2.13 loses the order of effects (it notes them under the names of buffers and looks them up by operation),
    and reorders by what the operations read: to save memory, and around CUDA graphs.
    """
    _keep_token(None)
    translators = _translators()
    recorded: list[Any] = []
    for node in reversed(translators[0].output.graph.nodes if translators else ()):
        if node.target in (_EMIT, _EMIT.default):
            recorded.append(node)
            if len(recorded) == 2:
                break
    if len(recorded) == 2:
        payload, predicates, tensors, ints = recorded[0].args
        recorded[0].args = (payload, predicates, [*tensors, recorded[1]], ints)


def _keep_token(token: Any) -> None:
    """Remember on the trace under way that it holds an op of ours, and the result of that where there is one."""
    context = _tracing_context()
    if context is not None:
        setattr(context, _TOKEN, token)


def _kept_token() -> list[Any]:
    token = getattr(_tracing_context(), _TOKEN, None)
    return [] if token is None else [token]


_TOKEN = "_graphmend_token"


def _tracing_context() -> Any:
    return torch._guards.TracingContext.try_get()


def _translators() -> list[Any]:
    """Dynamo's frames, innermost first; empty where Dynamo is not at work, or keeps them differently."""
    module = sys.modules.get("torch._dynamo.symbolic_convert")
    try:
        translator = module.InstructionTranslator.current_tx().output.current_tx  # type: ignore[union-attr]
    except AttributeError:
        return []
    found = []
    while translator is not None:
        found.append(translator)
        translator = getattr(translator, "parent", None)
    return found


def _in_subgraph() -> bool:
    """Whether the body of a higher-order operator (one arm of `torch.cond`, say) is traced."""
    translators = _translators()
    return bool(translators) and getattr(translators[0].output.current_tracer, "parent", None) is not None


def _traced_frames() -> list[_Frame]:
    """The frames of the user at the call, innermost first, as Python would have them without the compiler."""
    translators = _translators()
    if translators:
        frames = [_frame(t.f_code, t.lineno, t.f_globals) for t in translators if t.f_code.co_filename != _HERE]
        return _with_module_calls(frames)
    summaries = torch._guards.TracingContext.extract_stack()
    if summaries:
        found = [_Frame(s.filename, s.lineno or 0, _function_name(s.name), "") for s in reversed(summaries)]
        return _with_module_calls([frame for frame in found if frame.filename != _HERE])
    return _python_frames(sys._getframe(1))


def _frame(code: types.CodeType, line: int, namespace: dict[str, Any]) -> _Frame:
    module = str(namespace.get("__name__", ""))
    _GLOBALS[module, code.co_filename] = namespace
    return _Frame(code.co_filename, line, _function_name(code.co_name), module)


def _function_name(name: str) -> str:
    """The name in the source: what follows a graph break runs as a function of Dynamo's."""
    while resumed := _RESUMED.match(name):
        name = resumed[1]
    return name


def _python_frames(frame: types.FrameType | None) -> list[_Frame]:
    found = []
    while frame is not None:
        if frame.f_code.co_filename != _HERE:
            found.append(_frame(frame.f_code, frame.f_lineno, frame.f_globals))
        frame = frame.f_back
    return found


def _with_module_calls(frames: list[_Frame]) -> list[_Frame]:
    """Dynamo goes from `self.layer(x)` straight to `forward`; Python has two frames of `nn.Module` between
    them.
    """
    result: list[_Frame] = []
    for index, frame in enumerate(frames):
        result.append(frame)
        caller = frames[index + 1] if index + 1 < len(frames) else None
        if frame.function == "forward" and caller is not None and not _calls_forward(caller):
            result.extend(_module_call_frames())
    return result


def _calls_forward(frame: _Frame) -> bool:
    import linecache

    in_module = frame.filename == sys.modules[torch.nn.Module.__module__].__file__
    return in_module or ".forward(" in linecache.getline(frame.filename, frame.line)


@functools.cache
def _module_call_frames() -> tuple[_Frame, ...]:
    module = torch.nn.Module
    places = (("_call_impl", "return forward_call("), ("_wrapped_call_impl", "return self._call_impl("))
    return tuple(_line_of(getattr(module, name), text) for name, text in places)


def _line_of(function: Any, text: str) -> _Frame:
    import inspect

    line = function.__code__.co_firstlineno
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        lines, first = [], line
    line = next((first + index for index, content in enumerate(lines) if text in content), line)
    return _frame(function.__code__, line, function.__globals__)


# --- constants in the payload ---


class _NotCarried(Exception):
    pass


def _encode(spec: Any) -> Any:
    """A spec of `_carry` in JSON: its constants are replaced, the rest is lists and names already."""
    if not isinstance(spec, tuple):
        return spec
    kind = spec[0] if spec else None
    if kind == "constant":
        return ["constant", *_encode_constant(spec[1])]
    if kind == "meta":
        return [*spec[:3], str(spec[3]).removeprefix("torch."), spec[4]]
    if kind == "instance":
        return ["instance", _encode_class(spec[1], built=True), [_encode(item) for item in spec[2]]]
    return [_encode(item) for item in spec]


def _encode_constant(value: Any) -> list[Any]:
    if isinstance(value, Enum):
        name = str(value._name_)
        if getattr(type(value), name, None) is not value:
            raise _NotCarried
        return ["member", _encode_class(type(value)), name]
    if isinstance(value, type):
        return ["class", _encode_class(value)]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, bytes):
        return ["bytes", value.decode("latin-1")]
    if isinstance(value, torch.device):
        return ["device", str(value)]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return ["torch", str(value).removeprefix("torch.")]
    return ["ellipsis"] if value is Ellipsis else ["value", value]


def _encode_class(cls: type, built: bool = False) -> list[str]:
    """Where a class is found. `built`: whether equal arguments make an equal instance, too."""
    address = [cls.__module__, cls.__qualname__]
    if _find(address) is not cls or (built and not _rebuildable(cls)):
        raise _NotCarried
    return address


def _rebuildable(cls: type) -> bool:
    if issubclass(cls, Warning):
        own = [vars(base) for base in cls.__mro__ if base.__module__ != "builtins"]
        return not any(name in names for names in own for name in ("__init__", "__new__", "__reduce__"))
    return issubclass(cls, tuple) and (hasattr(cls, "_make") or cls.__module__ == "torch.return_types")


def _find(address: list[str]) -> Any:
    """The class at `[module, qualified name]`, or None."""
    module, names = address
    found: Any = _namespace(module)
    for index, name in enumerate(names.split(".")):
        found = found.get(name) if index == 0 else getattr(found, name, None)
    return found


def _namespace(module: str, filename: str = "") -> dict[str, Any]:
    """The globals of a module, even one that is not in `sys.modules`."""
    known = _GLOBALS.get((module, filename))
    if known is not None:
        return known
    if module in sys.modules:
        return vars(sys.modules[module])
    for (name, _), namespace in list(_GLOBALS.items()):
        if name == module and not filename:
            return namespace
    fresh: dict[str, Any] = {
        "__name__": module or "<unknown>",
        "__file__": filename,
        "__builtins__": builtins,
    }
    return _GLOBALS.setdefault((module, filename), fresh) if filename else fresh


# --- when the graph runs ---


class _Batched:
    """A tensor under `torch.vmap`, with the text that it has there."""

    def __init__(self, value: Any, dim: int, level: int) -> None:
        self.value, self.dim, self.level = value, dim, level

    def __repr__(self) -> str:
        value = "\n".join("    " + line for line in repr(self.value).split("\n"))
        return f"BatchedTensor(lvl={self.level}, bdim={self.dim}, value=\n{value}\n)"


class _Rebuild:
    """The arguments of a call, out of its payload, its tensors and its ints."""

    def __init__(self, tensors: Iterator[Any], ints: Iterator[int], keep: bool) -> None:
        self.tensors, self.ints, self.keep = tensors, ints, keep

    def __call__(self, spec: list[Any]) -> Any:
        return getattr(self, "_" + spec[0])(*spec[1:])

    def all(self, specs: list[Any]) -> list[Any]:
        return [self(spec) for spec in specs]

    def named(self, specs: list[Any]) -> dict[str, Any]:
        return {key: self(spec) for key, spec in specs}

    def _tensor(self, parameter: bool, leaf: bool, *batches: list[int]) -> Any:
        value: Any = self._shown(next(self.tensors), parameter, leaf)
        for dim, level in reversed(batches):
            value = _Batched(value, dim, level)
        return value

    def _meta(self, parameter: bool, leaf: bool, dtype: str, dims: int) -> Any:
        shape = [next(self.ints) for _ in range(dims)]
        value = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        return self._shown(value, parameter, leaf)

    def _shown(self, tensor: torch.Tensor, parameter: bool, leaf: bool) -> torch.Tensor:
        tensor = tensor.detach()
        if self.keep:
            # A log record may be formatted later, when the graph has used the memory for something else.
            tensor = tensor.clone()
        if parameter:
            return torch.nn.Parameter(tensor, requires_grad=leaf)
        return tensor.requires_grad_() if leaf else tensor

    def _reading(self, method: str, tensor: list[Any]) -> Any:
        return getattr(self(tensor), method)()

    def _int(self) -> int:
        return next(self.ints)

    def _bool(self) -> bool:
        return bool(next(self.ints))

    def _float(self) -> float:
        return float(next(self.tensors).item())

    def _stream(self, name: str) -> Any:
        return getattr(sys, name)

    def _tuple(self, items: list[Any]) -> Any:
        return tuple(self.all(items))

    def _list(self, items: list[Any]) -> Any:
        return self.all(items)

    def _size(self, items: list[Any]) -> Any:
        return torch.Size(self.all(items))

    def _range(self, items: list[Any]) -> Any:
        return range(*self.all(items))

    def _dict(self, items: list[Any]) -> Any:
        flat = iter(self.all(items))
        return dict(zip(flat, flat, strict=True))

    def _instance(self, address: list[str], items: list[Any]) -> Any:
        cls, values = _find(address), self.all(items)
        if issubclass(cls, Warning):
            return cls(*values)
        return cls._make(values) if hasattr(cls, "_make") else cls(values)

    def _format(self, template: str, positional: list[Any], named: list[Any]) -> str:
        return template.format(*self.all(positional), **self.named(named))

    def _percent(self, template: str, values: list[Any]) -> str:
        return template % self(values)  # type: ignore[no-any-return]

    def _constant(self, kind: str, *parts: Any) -> Any:
        return _decode_constant(kind, *parts)


def _decode_constant(kind: str, *parts: Any) -> Any:
    if kind == "value":
        return parts[0]
    if kind == "class":
        return _find(parts[0])
    if kind == "member":
        return getattr(_find(parts[0]), parts[1])
    if kind == "complex":
        return complex(*parts)
    if kind == "bytes":
        return parts[0].encode("latin-1")
    if kind == "device":
        return torch.device(parts[0])
    return Ellipsis if kind == "ellipsis" else getattr(torch, parts[0])


_read = functools.lru_cache(maxsize=4096)(json.loads)


def _perform(payload: str, predicates: list[torch.Tensor], tensors: list[Any], ints: list[int]) -> None:
    """Make the call of `payload`, if each predicate is true, on the target as it is now."""
    for predicate in predicates:
        if not predicate:
            return
    kind, name, method, positional, keywords, frames, questions = _read(payload)
    rebuild = _Rebuild(iter(tensors), iter(ints), keep=kind in ("logger", "logging"))
    for question, negated, asked, named in questions:
        if bool(getattr(torch, question)(*rebuild.all(asked), **rebuild.named(named))) is negated:
            return
    args, kwargs = rebuild.all(positional), rebuild.named(keywords)
    if kind == "print":
        builtins.print(*args, **kwargs)
    elif kind == "stream":
        getattr(sys, name).write(*args, **kwargs)
    elif kind == "warn":
        _call_from(_stack(frames, args[2:3], kwargs), warnings.warn, args, kwargs)
    elif kind == "logging":
        _call_from(_stack(frames, [], kwargs), getattr(logging, name), args, kwargs)
    elif kind == "fail":
        fail(*args, **kwargs)
    elif kind == "fail_from":
        fail_from(*args, **kwargs)
    elif kind == "check":
        getattr(torch, name)(*args, **kwargs)
    else:
        _call_from(_stack(frames, [], kwargs), getattr(logging.getLogger(name), method), args, kwargs)


def _call_late(handle: _Handle, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of a handle that left its trace (at a graph break), from the place where it is made."""
    for predicate in handle._gm_predicates:
        if not predicate:
            return None
    target = handle._gm_target
    target = getattr(target, handle._gm_method) if handle._gm_method else target
    args = tuple(_resolved(value) for value in args)
    kwargs = {key: _resolved(value) for key, value in kwargs.items()}
    return _call_from(_python_frames(sys._getframe(1)), target, args, kwargs)


def _stack(frames: list[list[Any]], level: list[Any], kwargs: dict[str, Any]) -> list[_Frame]:
    """The stack that the call is to see: the traced frames and, for a call that looks further, those below
    them.
    """
    stack = [_Frame(*frame) for frame in frames]
    wanted = kwargs.get("stacklevel", level[0] if level else 1)
    if isinstance(wanted, int) and wanted <= len(stack) and not kwargs.get("skip_file_prefixes"):
        return stack
    return stack + _frames_below(stack[-1] if stack else None)


def _frames_below(root: _Frame | None) -> list[_Frame]:
    """The real frames below the compiled one, without those of the compiler; none if it is not on the
    stack.
    """
    frames = _python_frames(sys._getframe(1))
    dynamo = torch.__path__[0].replace("\\", "/") + "/_dynamo/"
    if root is not None:
        place = next(
            (i for i, f in enumerate(frames) if (f.filename, f.function) == (root.filename, root.function)),
            None,
        )
        if place is None:
            return []
        frames = frames[place + 1 :]
        if frames and (frames[0].filename, frames[0].function) == (root.filename, root.function):
            frames = frames[1:]
    result: list[_Frame] = []
    start = 0
    for frame in frames:
        if not frame.filename.replace("\\", "/").startswith(dynamo):
            result.append(frame)
        elif frame.function == "__call__":
            del result[start:]  # OptimizedModule calls itself through nn.Module before it calls the model
        else:
            start = len(result)
    return result


def _call_from(frames: list[_Frame], call: Any, args: Any, kwargs: Any) -> Any:
    """`call(*args, **kwargs)` from stand-ins for `frames` (innermost first), for those who look at their
    callers.
    """
    for frame in frames:
        call, args, kwargs = _stub(frame), (call, args, kwargs), {}
    return call(*args, **kwargs)


_CALL = compile("lambda call, args, kwargs: call(*args, **kwargs)", "stub", "eval").co_consts[0]


@functools.lru_cache(maxsize=4096)
def _stub(frame: _Frame) -> Any:
    changes: dict[str, Any] = {
        "co_filename": frame.filename,
        "co_firstlineno": frame.line,
        "co_name": frame.function,
    }
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = frame.function
    code = _CALL.replace(**changes)
    if _SKIP is not None:
        _SKIP(code)
    return types.FunctionType(code, _namespace(frame.module, frame.filename))


# --- the op ---


def _vmapped(info: Any, in_dims: Any, payload: str, predicates: Any, tensors: Any, ints: Any) -> Any:
    """One call for the whole batch."""
    _, predicate_dims, tensor_dims, _ = in_dims
    if any(dim is not None for dim in predicate_dims or ()):
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
            "We don't support that yet, please shout over at "
            "https://github.com/pytorch/functorch/issues/257 ."
        )
    level = torch._C._functorch.maybe_current_level() or 0
    call = json.loads(payload)
    _note_batches([call[6], *call[3:5]], iter(tensor_dims or [None] * len(tensors)), level)
    return _EMIT(json.dumps(call, separators=(",", ":")), predicates, tensors, ints), None


def _note_batches(spec: Any, dims: Iterator[Any], level: int) -> None:
    """Write into the specs of the tensors, in their order, which dimension the vmap of `level` took."""
    if not isinstance(spec, list):
        return
    if spec[:1] == ["tensor"] or spec == ["float"]:
        dim = next(dims)
        if dim is not None:
            spec.append([dim, level])
    elif spec[:1] != ["constant"]:
        for item in spec:
            _note_batches(item, dims, level)


def _register() -> Any:
    """The op, made by the first copy of this file in the process; None where torch cannot keep an effect in a
    graph.
    """
    if hasattr(getattr(torch.ops, _NAMESPACE), _OP):
        return getattr(getattr(torch.ops, _NAMESPACE), _OP)
    try:
        from torch._library.effects import EffectType
    except ImportError:
        return None
    # A captured CUDA graph would replay without running the op.
    tags = [tag for tag in (getattr(torch.Tag, "cudagraph_unsafe", None),) if tag is not None]
    definition = torch.library.custom_op(
        f"{_NAMESPACE}::{_OP}",
        _run,
        mutates_args=(),
        schema="(str payload, Tensor[] predicates, Tensor[] tensors, SymInt[] ints) -> Tensor",
        tags=tags,
    )
    definition.register_fake(lambda payload, predicates, tensors, ints: torch.empty((), device="cpu"))
    definition.register_vmap(_vmapped)
    definition.register_effect(EffectType.ORDERED)
    return getattr(getattr(torch.ops, _NAMESPACE), _OP)


def _run(payload: str, predicates: list[torch.Tensor], tensors: list[Any], ints: list[int]) -> torch.Tensor:
    _perform(payload, predicates, tensors, ints)
    return torch.empty((), device="cpu")


def _run_as_it_is(value: Any, skip: Callable[[types.CodeType], None]) -> None:
    """Tell Dynamo not to trace these frames on their own. It still inlines them into a frame of the user's.

    A frame that Dynamo gave up (a break in a loop) runs eagerly, but the functions that it calls are traced
    one by one: `deferred` would return a handle there.
    """
    if isinstance(value, type) and value.__module__ == __name__:
        for member in vars(value).values():
            _run_as_it_is(member, skip)
    elif isinstance(value, types.FunctionType) and value.__module__ == __name__:
        _run_as_it_is(value.__code__, skip)
    elif isinstance(value, types.CodeType):
        skip(value)
        for constant in value.co_consts:
            _run_as_it_is(constant, skip)


def _skip_code() -> Callable[[types.CodeType], None] | None:
    """What `torch._dynamo.eval_frame.skip_code` does, without the import of torch._dynamo."""
    dynamo = torch._C._dynamo.eval_frame
    try:
        strategy = dynamo._FrameExecStrategy(dynamo._FrameAction.SKIP, dynamo._FrameAction.DEFAULT)
        return functools.partial(_set_strategy, dynamo.set_code_exec_strategy, strategy)
    except AttributeError:
        return None


def _set_strategy(setter: Callable[[types.CodeType, Any], None], strategy: Any, code: types.CodeType) -> None:
    setter(code, strategy)


_SKIP = _skip_code()
_EMIT: Any = None if _SKIP is None else _register()
if _SKIP is not None:
    for _value in list(globals().values()):
        _run_as_it_is(_value, _SKIP)
