"""What other files need to know about a module: imports, classes, functions, and who refers to whom.

A summary is made in one pass over the syntax tree, holds only strings, and is cached by the file's content. The project
index is built from summaries alone; a file is parsed again only if a rule has something to look at in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from graphmend_lint.analysis.names import dotted, known_while_tracing

#: Bump when the shape or meaning of a summary changes: cached ones of another version are ignored.
VERSION = 7

MODULE_BODY = "<module>"


@dataclass(slots=True)
class FunctionSummary:
    """One function or method. Names are as spelled in the file, dotted.

    `qualname` follows Python's (`Model.forward`, `outer.<locals>.inner`). In `decorators` and `returns`, `name()` is a
    call of that name. `refs` are names and attribute chains that are
    loaded in live code (not under `if not torch.compiler.is_compiling()`): calls, and functions passed along.
    `tried` are those of them that stand inside a `try` with handlers. `has_guard`: an `if` ends in `raise`,
    or something is asserted, and the test is not plainly one of shapes, types and attributes. `has_branch`: a test
    may be one of tensor data.
    """

    qualname: str
    line: int
    end_line: int
    class_name: str | None
    decorators: tuple[str, ...]
    params: tuple[tuple[str, str], ...]
    refs: frozenset[str]
    calls: frozenset[str]
    returns: tuple[str, ...]
    locals: dict[str, str]
    is_generator: bool
    is_async: bool
    is_host: bool
    annotation: str
    tried: frozenset[str] = frozenset()
    has_guard: bool = False
    has_branch: bool = False


@dataclass(slots=True)
class ClassSummary:
    """One class: its bases as spelled and its methods' qualnames.

    `attributes` maps NAME to the callee of `self.NAME = Callee(...)` (or of `NAME = Callee(...)` in the class body),
    `plain` holds the attributes that methods assign from anything but a call, `buffers` those that
    `self.register_buffer("NAME", ...)` makes, `fields` the annotated names of the class body.
    """

    qualname: str
    line: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    methods: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)
    buffers: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class CompileSite:
    """A call such as `torch.compile(target)` in the function `scope`; the target `Model()` is a call of that name.

    `kind` is "compile", "disable" (`torch.compiler.disable`) or "script" (`torch.jit.script`).
    """

    scope: str
    target: str
    line: int
    kind: str


@dataclass(slots=True)
class ModuleSummary:
    """One file. `imports` map a local name to the dotted name that it stands for (leading dots: relative)."""

    imports: dict[str, str] = field(default_factory=dict)
    star_imports: tuple[str, ...] = ()
    functions: dict[str, FunctionSummary] = field(default_factory=dict)
    classes: dict[str, ClassSummary] = field(default_factory=dict)
    assigned_calls: dict[str, str] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    compiled: tuple[CompileSite, ...] = ()


def summarize(tree: ast.Module) -> ModuleSummary:
    """The summary of a parsed module."""
    return _Summarizer().run(tree)


#: A function that does one of these is run by a person or a script: it calls a model, it is not compiled itself.
HOST_CALLS = frozenset(
    {
        "backward",
        "zero_grad",
        "add_argument",
        "parse_args",
        "from_pretrained",
        "save_pretrained",
        "load_state_dict",
        "synchronize",
        "DataLoader",
        "open",
        "input",
    }
)
HOST_NAMES = frozenset(
    {"torch.save", "torch.load", "torch.compile", "torch.manual_seed", "time.time", "time.perf_counter"}
)

_COMPILE_SITES = {
    "torch.compile": "compile",
    "torch._dynamo.optimize": "compile",
    "torch.export.export": "compile",
    "torch._dynamo.export": "compile",
    "torch.compiler.disable": "disable",
    "torch._dynamo.disable": "disable",
    "torch.jit.script": "script",
}
_COMPILE_NAMES = frozenset(name.rpartition(".")[2] for name in _COMPILE_SITES) | {"partial"}


class _Summarizer:
    def __init__(self) -> None:
        self.out = ModuleSummary()
        self.compiled: list[CompileSite] = []
        self.stars: list[str] = []

    def run(self, tree: ast.Module) -> ModuleSummary:
        assigned: set[str] = set()
        for statement in _module_level(tree.body):
            self._top(statement, assigned)
        body = _Body(set())
        body.statements(tree.body, nested=None, resolve=self.resolve)
        self._compile_sites(MODULE_BODY, body)
        self._functions(tree.body, prefix="", class_name=None)
        self.out.assigned = frozenset(assigned)
        self.out.star_imports = tuple(self.stars)
        self.out.compiled = tuple(self.compiled)
        return self.out

    def resolve(self, name: str) -> str:
        """The dotted name behind `name` as far as this file's own imports tell."""
        first, _, rest = name.partition(".")
        target = self.out.imports.get(first)
        if target is None:
            return name
        return f"{target}.{rest}" if rest else target

    def _top(self, statement: ast.stmt, assigned: set[str]) -> None:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname:
                    self.out.imports[alias.asname] = alias.name
                else:
                    first = alias.name.partition(".")[0]
                    self.out.imports[first] = first
        elif isinstance(statement, ast.ImportFrom):
            base = "." * statement.level + (statement.module or "")
            for alias in statement.names:
                if alias.name == "*":
                    self.stars.append(base)
                else:
                    joint = "" if base.endswith(".") or not base else "."
                    self.out.imports[alias.asname or alias.name] = f"{base}{joint}{alias.name}"
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            value = statement.value
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        assigned.add(name.id)
                if isinstance(target, ast.Name) and isinstance(value, ast.Call) and (callee := dotted(value.func)):
                    self.out.assigned_calls[target.id] = callee
                elif isinstance(target, ast.Name):
                    self.out.assigned_calls.pop(target.id, None)
                    if isinstance(value, (ast.Name, ast.Attribute)) and (alias_of := dotted(value)):
                        self.out.imports.setdefault(target.id, self.resolve(alias_of))
        elif isinstance(statement, (ast.For, ast.With, ast.AugAssign)):
            withs = statement.items if isinstance(statement, ast.With) else []
            bound = [w.optional_vars for w in withs] or [getattr(statement, "target", None)]
            for name in (node for target in bound if target for node in ast.walk(target)):
                if isinstance(name, ast.Name):
                    assigned.add(name.id)
                    self.out.assigned_calls.pop(name.id, None)

    def _functions(self, body: list[ast.stmt], prefix: str, class_name: str | None) -> None:
        for statement in _module_level(body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(statement, prefix, class_name)
            elif isinstance(statement, ast.ClassDef):
                self._class(statement, prefix)

    def _class(self, node: ast.ClassDef, prefix: str) -> None:
        qualname = prefix + node.name
        summary = ClassSummary(
            qualname,
            node.lineno,
            tuple(name for base in node.bases if (name := dotted(_unsubscripted(base)))),
            _decorators(node),
        )
        self.out.classes[qualname] = summary
        for statement in _module_level(node.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                summary.methods[statement.name] = f"{qualname}.{statement.name}"
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                summary.fields[statement.target.id] = ast.unparse(statement.annotation)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self._class_attribute(summary, target.id, statement.value)
        self._functions(node.body, qualname + ".", qualname)

    @staticmethod
    def _class_attribute(summary: ClassSummary, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Name) and value.id in summary.methods:  # __call__ = forward
            summary.methods[name] = summary.methods[value.id]
        elif isinstance(value, ast.Call):
            summary.attributes[name] = dotted(value.func) or ""
        else:
            summary.plain.add(name)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str, class_name: str | None) -> None:
        qualname = prefix + node.name
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        parameters = tuple((a.arg, ast.unparse(a.annotation) if a.annotation else "") for a in arguments)
        tensors = {name for name, annotation in parameters if "Tensor" in annotation}
        if class_name is not None:
            tensors |= {f"self.{buffer}" for buffer in self.out.classes[class_name].buffers}
        body = _Body(tensors)
        nested: list[ast.stmt] = []
        body.statements(node.body, nested=nested, resolve=self.resolve)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                body.expression(default)
        self.out.functions[qualname] = FunctionSummary(
            qualname,
            node.lineno,
            node.end_lineno or node.lineno,
            class_name,
            _decorators(node),
            parameters,
            frozenset(body.outer_refs()),
            frozenset(body.calls),
            tuple(body.returns),
            body.locals,
            body.is_generator,
            isinstance(node, ast.AsyncFunctionDef),
            self._is_host(body),
            ast.unparse(node.returns) if node.returns else "",
            frozenset(body.tried),
            body.has_guard,
            body.has_branch,
        )
        if class_name is not None and "." not in qualname.removeprefix(class_name + "."):
            owner = self.out.classes[class_name]
            for attribute, callee in body.self_calls.items():
                owner.attributes.setdefault(attribute, callee)
            owner.plain |= body.self_plain
            owner.buffers |= body.buffers
        self._compile_sites(qualname, body)
        self._functions(nested, f"{qualname}.<locals>.", class_name)

    def _is_host(self, body: _Body) -> bool:
        return any(call.rpartition(".")[2] in HOST_CALLS or self.resolve(call) in HOST_NAMES for call in body.calls)

    def _compile_sites(self, scope: str, body: _Body) -> None:
        for call in body.compile_calls:
            name = self.resolve(dotted(call.func) or "")
            arguments = list(call.args)
            if name.rpartition(".")[2] == "partial" and arguments:
                name, arguments = self.resolve(dotted(arguments[0]) or ""), arguments[1:]
            if name not in _COMPILE_SITES:
                continue
            arguments += [k.value for k in call.keywords if k.arg in ("model", "mod", "f")]
            made = arguments[0].func if arguments and isinstance(arguments[0], ast.Call) else None
            target = f"{dotted(made)}()" if made else dotted(arguments[0]) if arguments else None
            if target is not None and target != "None()":
                self.compiled.append(CompileSite(scope, target, call.lineno, _COMPILE_SITES[name]))


class _Body:
    """Everything that the live code of one function body refers to; nested definitions are left to the caller."""

    def __init__(self, tensors: set[str]) -> None:
        #: Names, and attributes of `self`, that may hold tensors, as far as their form tells.
        self.tensors = tensors
        self.refs: set[str] = set()
        self.stores: set[str] = set()
        self.calls: set[str] = set()
        self.tried: set[str] = set()
        self.has_guard = False
        self.has_branch = False
        self.returns: list[str] = []
        self.locals: dict[str, str] = {}
        self.self_calls: dict[str, str] = {}
        self.self_plain: set[str] = set()
        self.buffers: set[str] = set()
        self.compile_calls: list[ast.Call] = []
        self.is_generator = False

    def statements(self, body: list[ast.stmt], nested: list[ast.stmt] | None, resolve: object) -> None:
        for statement in live_statements(body, resolve):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if nested is not None:
                    nested.append(statement)
                for decorator in statement.decorator_list:
                    self.expression(decorator)
                continue
            self._note(statement, resolve)
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    self.expression(child)
                elif isinstance(child, ast.withitem):
                    self.expression(child.context_expr)

    def _note(self, statement: ast.stmt, resolve: object) -> None:
        if _handles_exceptions(statement, resolve):
            inside = _Body(self.tensors)
            inside.statements(statement.body, None, resolve)
            self.tried |= inside.refs
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise):
            self.has_guard = self.has_guard or not _looks_static(statement.test)
        if isinstance(statement, ast.Assert):
            self.has_guard = self.has_guard or not _looks_static(statement.test)
        if isinstance(statement, (ast.If, ast.While)):
            self.has_branch = self.has_branch or _hints_tensor(statement.test, self.tensors)
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Return) and value is not None:
            called = isinstance(value, ast.Call)
            if name := dotted(value.func if isinstance(value, ast.Call) else value):
                self.returns.append(f"{name}()" if called else name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None:
            callee = dotted(value.func) or "" if isinstance(value, ast.Call) else None
            if _hints_tensor(value, self.tensors):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                self.tensors |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                self._assign(target, callee)

    def outer_refs(self) -> Iterator[str]:
        """The names that may stand for something defined elsewhere: not plain local variables."""
        for ref in self.refs:
            first = ref.partition(".")[0]
            if first not in self.stores or first in self.locals:
                yield ref

    def _assign(self, target: ast.expr, callee: str | None) -> None:
        if isinstance(target, ast.Name) and callee:
            self.locals[target.id] = callee
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            if callee is None:
                self.self_plain.add(target.attr)
            else:
                self.self_calls.setdefault(target.attr, callee)

    def expression(self, root: ast.AST) -> None:
        """Note every name and call in an expression. The hot loop of the index: it sees each node of a project."""
        stack: list[ast.AST] = [root]
        while stack:
            node = stack.pop()
            kind = node.__class__
            if kind is ast.Name:
                names = self.refs if node.ctx.__class__ is ast.Load else self.stores  # type: ignore[attr-defined]
                names.add(node.id)  # type: ignore[attr-defined]
                continue
            if kind is ast.Attribute:
                name = dotted(node)
                if name is None:
                    stack.append(node.value)  # type: ignore[attr-defined]
                elif node.ctx.__class__ is ast.Load:  # type: ignore[attr-defined]
                    self.refs.add(name)
                continue
            if kind is ast.Call:
                self._call(node)  # type: ignore[arg-type]
            elif kind is ast.Yield or kind is ast.YieldFrom:
                self.is_generator = True
            elif kind is ast.IfExp or kind is ast.BoolOp or kind is ast.UnaryOp:
                self._choice(node)  # type: ignore[arg-type]
            for attribute in _CHILDREN[kind]:
                value = getattr(node, attribute)
                if value.__class__ is list:
                    stack.extend(value)
                elif value is not None:
                    stack.append(value)

    def _choice(self, node: ast.IfExp | ast.BoolOp | ast.UnaryOp) -> None:
        if self.has_branch:
            return
        if isinstance(node, ast.IfExp):
            self.has_branch = _hints_tensor(node.test, self.tensors)
        elif isinstance(node, ast.BoolOp) or isinstance(node.op, ast.Not):
            self.has_branch = _hints_tensor(node, self.tensors)

    def _call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if name is None:
            if not isinstance(node.func, ast.Attribute):
                return
            name = f"?.{node.func.attr}"
        self.calls.add(name)
        if name == "self.register_buffer" and node.args and isinstance(node.args[0], ast.Constant):
            self.buffers.add(str(node.args[0].value))
        if name.rpartition(".")[2] in _COMPILE_NAMES:
            self.compile_calls.append(node)


class _Children(dict[type, tuple[str, ...]]):
    """The attributes of a node that hold expressions, by the node's class; what is no node has none."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        skipped = {"ctx", "op", "ops", "kind", "conversion", "is_async", "arg", "str", "type_comment"}
        if kind is ast.Constant or not issubclass(kind, ast.AST):
            self[kind] = ()
        else:
            self[kind] = tuple(name for name in kind._fields if name not in skipped)
        return self[kind]


_CHILDREN = _Children()


_STATIC_CALLS = frozenset({"isinstance", "issubclass", "hasattr", "callable", "len"})
_STATIC_METHODS = frozenset(
    {"size", "dim", "numel", "ndimension", "is_floating_point", "keys", "startswith", "endswith"}
)
_STATIC_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "device", "training"})


def _looks_static(test: ast.expr) -> bool:
    """Whether a test is made of shapes, types, constants and attributes of `self` alone, by its form."""
    if isinstance(test, ast.BoolOp):
        return all(map(_looks_static, test.values))
    if isinstance(test, ast.UnaryOp):
        return _looks_static(test.operand)
    if isinstance(test, ast.Compare):
        by_identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
        return by_identity or all(map(_looks_static, (test.left, *test.comparators)))
    if isinstance(test, (ast.Tuple, ast.List, ast.Set)):
        return all(map(_looks_static, test.elts))
    if isinstance(test, ast.BinOp):
        return _looks_static(test.left) and _looks_static(test.right)
    if isinstance(test, ast.Call):
        if isinstance(test.func, ast.Attribute):
            return test.func.attr in _STATIC_METHODS
        return isinstance(test.func, ast.Name) and test.func.id in _STATIC_CALLS
    if isinstance(test, ast.Subscript):
        return isinstance(test.value, ast.Attribute) and test.value.attr in _STATIC_ATTRIBUTES
    if isinstance(test, ast.Attribute):
        return test.attr in _STATIC_ATTRIBUTES or (dotted(test) or "").startswith("self.")
    return isinstance(test, ast.Constant)


#: Methods and functions of torch that give a tensor, or read one, where they are called on something unknown.
_READING = frozenset(
    {
        "all",
        "allclose",
        "amax",
        "amin",
        "any",
        "bool",
        "count_nonzero",
        "equal",
        "is_nonzero",
        "isclose",
        "isfinite",
        "isinf",
        "isnan",
        "item",
        "logical_and",
        "logical_not",
        "logical_or",
        "max",
        "mean",
        "median",
        "min",
        "norm",
        "prod",
        "std",
        "sum",
        "var",
    }
)


_MADE_OF_PARTS = (
    ast.BoolOp,
    ast.BinOp,
    ast.IfExp,
    ast.List,
    ast.NamedExpr,
    ast.Starred,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
)


def _hints_tensor(node: ast.AST, tensors: set[str]) -> bool:
    """Whether an expression may be made of tensor data, by its form and by the names that may hold tensors."""
    if isinstance(node, ast.Name):
        return node.id in tensors
    if isinstance(node, ast.Attribute):
        return node.attr not in _STATIC_ATTRIBUTES and (
            _hints_tensor(node.value, tensors) or (dotted(node) or "") in tensors
        )
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _READING:
                return True
            if node.func.attr in _STATIC_METHODS:
                return False
            if _hints_tensor(node.func.value, tensors):
                return True
        elif isinstance(node.func, ast.Name) and node.func.id in _STATIC_CALLS:
            return False
        return any(_hints_tensor(part, tensors) for part in (*node.args, *(k.value for k in node.keywords)))
    if isinstance(node, ast.Compare):
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        return any(_hints_tensor(part, tensors) for part in (node.left, *node.comparators))
    if isinstance(node, _MADE_OF_PARTS):
        return any(_hints_tensor(part, tensors) for part in ast.iter_child_nodes(node))
    return False


def live_statements(body: list[ast.stmt], resolve: object) -> Iterator[ast.stmt]:
    """The statements of a body and its blocks, in order, without those that Dynamo never reaches.

    `resolve` maps a dotted name as spelled to the one that it stands for. Definitions are yielded, not entered.
    """
    for statement in body:
        verdict = None
        if isinstance(statement, ast.If):
            verdict = truth_while_tracing(statement.test, resolve)
            if verdict is None:
                yield statement
            if verdict is not False:
                yield from live_statements(statement.body, resolve)
            if verdict is not True:
                yield from live_statements(statement.orelse, resolve)
            taken = statement.body if verdict else statement.orelse
            if verdict is not None and taken and isinstance(taken[-1], (ast.Return, ast.Raise)):
                return
            continue
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for block in blocks(statement):
            yield from live_statements(block, resolve)


def _handles_exceptions(statement: ast.stmt, resolve: object) -> TypeGuard[ast.Try | ast.With]:
    """Whether an exception in the body of a statement may end there."""
    assert callable(resolve)
    if isinstance(statement, ast.With):
        names = [dotted(i.context_expr.func) for i in statement.items if isinstance(i.context_expr, ast.Call)]
        return any(resolve(name) == "contextlib.suppress" for name in names if name)
    return bool(getattr(statement, "handlers", ()))


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists inside a compound statement, in source order."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        value = getattr(statement, name, None)
        if isinstance(value, list):
            if name in ("handlers", "cases"):
                for part in value:
                    yield part.body
            else:
                yield value


def truth_while_tracing(test: ast.expr, resolve: object) -> bool | None:
    """What Dynamo makes of a test such as `not torch.compiler.is_compiling()`; None where it depends on more."""
    assert callable(resolve)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth_while_tracing(test.operand, resolve)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = [truth_while_tracing(value, resolve) for value in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in parts:
            return decisive
        return (not decisive) if None not in parts else None
    name = dotted(test.func) if isinstance(test, ast.Call) else dotted(test)
    return None if name is None else known_while_tracing(resolve(name))


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a body, also those in its blocks, but not those in definitions."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for block in blocks(statement):
                yield from _module_level(block)


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[str, ...]:
    found = []
    for decorator in node.decorator_list:
        called = isinstance(decorator, ast.Call)
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(decorator, ast.Call) and decorator.args and name in ("functools.partial", "partial"):
            name = dotted(decorator.args[0])
        if name:
            found.append(f"{name}()" if called else name)
    return tuple(found)


def _unsubscripted(base: ast.expr) -> ast.expr:
    return base.value if isinstance(base, ast.Subscript) else base
