"""Regions: which functions run inside a compiled frame, and which entry they are reached from."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.project import Project, Symbol
from graphmend_lint.analysis.summary import ClassSummary, FunctionSummary, ModuleSummary
from graphmend_lint.findings import Confidence

COMPILE_DECORATORS = frozenset({"torch.compile", "torch._dynamo.optimize"})

SCRIPT_DECORATORS = frozenset(
    {"torch.jit.script", "torch.jit.script_method", "torch.jit.export", "torch.jit.script_if_tracing"}
)

#: Dynamo does not look into functions that carry one of these.
OPAQUE_DECORATORS = frozenset(
    {
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch._disable_dynamo",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.allow_in_graph",
        "torch._dynamo.disallow_in_graph",
        "torch.compiler.assume_constant_result",
        "torch._dynamo.assume_constant_result",
        "torch.library.custom_op",
        "torch.library.triton_op",
        "torch.library.register_fake",
        "torch.jit.ignore",
        "torch.jit.unused",
        "triton.jit",
        "numba.jit",
        "pytest.fixture",
    }
)
#: Module classes that live outside of torch and whose `forward` people compile.
MODULE_BASES = frozenset(
    {
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "transformers.modeling_layers.GradientCheckpointingLayer",
        "diffusers.ModelMixin",
        "diffusers.models.modeling_utils.ModelMixin",
        "diffusers.models.ModelMixin",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.LightningModule",
        "pytorch_lightning.core.LightningModule",
    }
)
_NOT_MODULES = frozenset({"torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter"})

#: Methods of a module that a person calls, never its `forward`.
_HOST_METHODS = frozenset(
    {
        "__init__",
        "__init_subclass__",
        "__new__",
        "__del__",
        "__repr__",
        "__str__",
        "__setstate__",
        "__getstate__",
        "extra_repr",
        "reset_parameters",
        "init_weights",
        "_init_weights",
        "configure_optimizers",
        "build",
        "main",
        "setup",
        "fit",
        "train",
        "evaluate",
        "generate",
        "training_step",
        "validation_step",
        "test_step",
        "predict_step",
    }
)
_HOST_CLASSES = (
    "ImageProcessor",
    "VideoProcessor",
    "FeatureExtractor",
    "Tokenizer",
    "Trainer",
    "Dataset",
    "Collator",
    "Pipeline",
    "Callback",
)


@dataclass(frozen=True, slots=True)
class Region:
    """Why a function is compiled. `entry` is text for people, None where no entry is known (a likely region)."""

    confidence: Confidence
    entry: str | None


@dataclass(slots=True)
class FileRegions:
    """The regions of one file by function qualname, and the functions that Dynamo is kept out of.

    `scripted`: functions that TorchScript compiles as well. `in_try`: functions that run inside a `try` (or
    `contextlib.suppress`) of a caller, with that caller.
    """

    reached: dict[str, Region]
    opaque: frozenset[str] = frozenset()
    scripted: frozenset[str] = frozenset()
    in_try: dict[str, str] = field(default_factory=dict)


def is_module_class(project: Project, symbol: Symbol) -> bool:
    """Whether a class descends from `torch.nn.Module`, as far as the project and known libraries tell."""
    return any(a.path is None and _is_module_name(a.name) for a in project.ancestors(symbol))


def _is_module_name(name: str) -> bool:
    return (name.startswith("torch.nn.") and name not in _NOT_MODULES) or name in MODULE_BASES


class RegionFinder:
    """A walk over the call graph from every entry of the project.

    `callers` has for each function that was reached, and is no entry itself, the one that it was reached from first.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.reached: dict[tuple[Path, str], Region] = {}
        self.opaque: set[tuple[Path, str]] = set()
        self.scripted: dict[tuple[Path, str], str] = {}
        self.in_try: dict[tuple[Path, str], str] = {}
        self.callers: dict[tuple[Path, str], Symbol] = {}
        self._queue: deque[tuple[Symbol, str]] = deque()
        self._mark_opaque()

    def enqueue(self, symbol: Symbol, entry: str) -> None:
        """Make a function an entry."""
        self._reach(symbol, entry)

    def run(self) -> dict[Path, FileRegions]:
        """The regions of every file in the project."""
        self._enqueue_entries()
        while self._queue:
            symbol, entry = self._queue.popleft()
            self._visit(symbol, entry)
        self._find_scripted()
        self._find_in_try()
        files: dict[Path, FileRegions] = {}
        for (path, name), region in self.reached.items():
            files.setdefault(path, FileRegions({})).reached[name] = region
        for (path, name), caller in self.in_try.items():
            files.setdefault(path, FileRegions({})).in_try[name] = caller
        for path in {p for p, _ in self.opaque}:
            files.setdefault(path, FileRegions({})).opaque = frozenset(n for p, n in self.opaque if p == path)
        for path in {p for p, _ in self.scripted}:
            files.setdefault(path, FileRegions({})).scripted = frozenset(n for p, n in self.scripted if p == path)
        return files

    def _find_scripted(self) -> None:
        """Mark what TorchScript compiles: what is scripted, and all that it calls."""
        entries: list[tuple[Symbol, str]] = []
        for path, summary in list(self.project.summaries.items()):
            entries += [
                (Symbol("function", path, function.qualname), "")
                for function in (summary.functions.values() if summary else ())
                if any(self._decorator(path, d) in SCRIPT_DECORATORS for d in function.decorators)
            ]
            for site in summary.compiled if summary else ():
                if site.kind == "script" and (symbol := self._target(path, site.scope, site.target)):
                    method = self.project.method(symbol, "forward") if symbol.kind == "class" else symbol
                    entries += [(method, "")] if method else []
        self._spread(entries, self.scripted)

    def _find_in_try(self) -> None:
        """Mark what runs inside a `try` of a caller: its errors meet a handler that a whole graph would not run in."""
        entries: list[tuple[Symbol, str]] = []
        for path, name in self.reached:
            symbol = Symbol("function", path, name)
            function = self.project.function(symbol)
            if function is None:
                continue
            for ref in function.tried:
                entries += [(target, name) for target in self._targets(path, function, ref)]
            for wrapper in self._wrappers(symbol, function):
                if self._tries_what_it_wraps(wrapper):
                    entries.append((symbol, wrapper.name))
        self._spread(entries, self.in_try)

    def _tries_what_it_wraps(self, wrapper: Symbol) -> bool:
        """Whether a wrapper calls a parameter of the decorator around it inside a `try`."""
        function = self.project.function(wrapper)
        given: set[str] = set()
        outer, nested, _ = wrapper.name.rpartition(".<locals>.")
        while nested:
            around = self.project.function(Symbol("function", wrapper.path, outer))
            given.update(name for name, _ in (around.params if around else ()))
            outer, nested, _ = outer.rpartition(".<locals>.")
        return function is not None and not given.isdisjoint(function.tried)

    def _wrappers(self, symbol: Symbol, function: FunctionSummary) -> Iterator[Symbol]:
        """What the decorators of a function put in its place."""
        for decorator in function.decorators:
            if symbol.path is None:
                return
            made_by = self.project.resolve(symbol.path, decorator.removesuffix("()"))
            yield from self._results(made_by, calls=2 if decorator.endswith("()") else 1)

    def _spread(self, entries: list[tuple[Symbol, str]], marks: dict[tuple[Path, str], str]) -> None:
        """Put a mark on functions and on all that is reached from them."""
        queue = deque(entries)
        while queue:
            symbol, mark = queue.popleft()
            if symbol.path is None or (symbol.path, symbol.name) in marks:
                continue
            marks[symbol.path, symbol.name] = mark
            queue.extend((target, mark) for target in self._reached_from(symbol))

    def _mark_opaque(self) -> None:
        for path, summary in list(self.project.summaries.items()):
            if summary is None:
                continue
            for function in summary.functions.values():
                if any(self._decorator(path, d) in OPAQUE_DECORATORS for d in function.decorators):
                    self.opaque.add((path, function.qualname))
            for site in summary.compiled:
                if site.kind == "disable":
                    symbol = self._target(path, site.scope, site.target)
                    if symbol is not None and symbol.kind == "function" and symbol.path:
                        self.opaque.add((symbol.path, symbol.name))

    def _decorator(self, path: Path, name: str) -> str:
        symbol = self.project.resolve(path, name.removesuffix("()"))
        return symbol.name if symbol.path is None else ""

    def _enqueue_entries(self) -> None:
        for path, summary in list(self.project.summaries.items()):
            if summary is None:
                continue
            for function in summary.functions.values():
                if any(self._decorator(path, d) in COMPILE_DECORATORS for d in function.decorators):
                    self._reach(Symbol("function", path, function.qualname), f"`{function.qualname}` is compiled")
            for site in summary.compiled:
                if site.kind == "compile" and (symbol := self._target(path, site.scope, site.target)):
                    self._enter(symbol, f"`torch.compile({site.target})` at {path.name}:{site.line}")
            for class_summary in summary.classes.values():
                self._enqueue_class(path, class_summary)

    def _enqueue_class(self, path: Path, class_summary: ClassSummary) -> None:
        symbol = Symbol("class", path, class_summary.qualname)
        compiled = any(self._decorator(path, d) in COMPILE_DECORATORS for d in class_summary.decorators)
        if compiled or ("forward" in class_summary.methods and is_module_class(self.project, symbol)):
            self._enter(symbol, f"`{class_summary.qualname}.forward`")

    def _enter(self, symbol: Symbol, entry: str) -> None:
        if symbol.kind == "class":
            for name in ("forward", "__call__"):
                if method := self.project.method(symbol, name):
                    self._reach(method, entry)
                    return
        elif symbol.kind == "function":
            self._reach(symbol, entry)

    def _target(self, path: Path, scope: str, target: str) -> Symbol | None:
        """What the first argument of `torch.compile(target)` in `scope` stands for."""
        summary = self.project.summary(path)
        if summary is None:
            return None
        if target.endswith("()"):
            made = self.project.resolve(path, target.removesuffix("()"))
            return made if made.kind == "class" else None
        function = summary.functions.get(scope)
        first, _, rest = target.partition(".")
        if function is not None and f"{scope}.<locals>.{target}" in summary.functions:
            return Symbol("function", path, f"{scope}.<locals>.{target}")
        if first == "self" and function is not None and function.class_name and rest:
            owner = Symbol("class", path, function.class_name)
            return self.project.method(owner, rest) or self.project.attribute_class(owner, rest)
        made_here = function.locals.get(first) if function else None
        if made_by := made_here or summary.assigned_calls.get(first):
            owner = self.project.resolve(path, made_by)
            if owner.kind == "class":
                return self.project.method(owner, rest) if rest else owner
            if made_here or target not in summary.functions:  # else: f = torch.compile(f)
                return None
        symbol = self.project.resolve(path, target)
        return symbol if symbol.kind in ("function", "class") else None

    def _reach(self, symbol: Symbol, entry: str) -> None:
        if symbol.path is None:
            return
        key = (symbol.path, symbol.name)
        if key in self.reached or key in self.opaque:
            return
        self.reached[key] = Region("definite", entry)
        self._queue.append((symbol, entry))

    def _visit(self, symbol: Symbol, entry: str) -> None:
        for target in self._reached_from(symbol):
            if target.path is not None and (target.path, target.name) not in self.reached:
                self.callers[target.path, target.name] = symbol
            self._reach(target, entry)

    def _reached_from(self, symbol: Symbol) -> Iterator[Symbol]:
        """The functions that run when a function does: its own, its decorators' wrappers, and those it refers to."""
        summary = self.project.summary(symbol.path) if symbol.path else None
        function = summary.functions.get(symbol.name) if summary else None
        if summary is None or function is None or symbol.path is None:
            return
        nested = f"{symbol.name}.<locals>."
        for name in summary.functions:
            if name.startswith(nested):
                yield Symbol("function", symbol.path, name)
        yield from self._wrappers(symbol, function)
        for ref in function.refs:
            beside = self._defined_around(summary, symbol.name, ref)
            if beside is not None:
                yield Symbol("function", symbol.path, beside)
            else:
                yield from self._targets(symbol.path, function, ref)

    @staticmethod
    def _defined_around(summary: ModuleSummary, function: str, name: str) -> str | None:
        """The function called `name` that is defined in one of the functions around `function`."""
        outer, nested, _ = function.rpartition(".<locals>.")
        while nested:
            if f"{outer}.<locals>.{name}" in summary.functions:
                return f"{outer}.<locals>.{name}"
            outer, nested, _ = outer.rpartition(".<locals>.")
        return None

    def _results(self, decorator: Symbol, calls: int) -> list[Symbol]:
        """The functions that calling a function `calls` times gives: what takes the place of what it decorates."""
        function = self.project.function(decorator) if calls <= 4 else None
        if function is None or decorator.path is None:
            return []
        found: list[Symbol] = []
        for returned in function.returns:
            name = returned.removesuffix("()")
            if {name, f"{name}()"} <= set(function.returns) and returned.endswith("()") != (calls == 1):
                continue  # `@decorator` and `@decorator(...)` both work: one return is for each
            inner = self.project.resolve(decorator.path, f"{decorator.name}.<locals>.{name}")
            if inner.kind != "function":
                inner = self.project.resolve(decorator.path, name)
            more = calls - 1 + returned.endswith("()")
            if inner.kind == "function" and inner != decorator:
                found += self._results(inner, more) if more else [inner]
        return found

    def _targets(self, path: Path, function: FunctionSummary, ref: str) -> list[Symbol]:
        """The functions that a name loaded in a function may call."""
        first, _, rest = ref.partition(".")
        if first in ("self", "cls", "super") and function.class_name:
            return self._self_targets(Symbol("class", path, function.class_name), first, rest)
        owner = self._instance_class(path, function, first)
        if owner is not None:
            return self._methods(owner, rest) if rest and "." not in rest else []
        if first in function.locals or any(first == name for name, _ in function.params):
            return []
        symbol = self.project.resolve(path, ref)
        if symbol.kind == "function":
            return [symbol]
        if symbol.kind == "class" and not is_module_class(self.project, symbol):
            found = (self.project.method(symbol, n) for n in ("__init__", "__post_init__", "__call__"))
            return [s for s in found if s is not None]
        return []

    def _self_targets(self, owner: Symbol, first: str, rest: str) -> list[Symbol]:
        name, _, deeper = rest.partition(".")
        if not name:
            return []
        if first == "super":
            found = self.project.method(owner, name, above=True)
            return [found] if found else []
        if deeper:
            held = self.project.attribute_class(owner, name)
            return self._methods(held, deeper) if held and "." not in deeper else self._methods(owner, name)
        return self._methods(owner, name) or self._called(self.project.attribute_class(owner, name))

    def _called(self, held: Symbol | None) -> list[Symbol]:
        """What calling an instance of a class runs."""
        found = [self.project.method(held, name) for name in ("forward", "__call__")] if held else []
        return [symbol for symbol in found if symbol is not None]

    def _methods(self, owner: Symbol, name: str) -> list[Symbol]:
        """The method that a class finds, and the ones that override it in the project."""
        found = self.project.method(owner, name)
        targets = [found] if found else []
        if owner.path is not None:
            for below in self.project.subclasses.get((owner.path, owner.name), ()):
                summary = self.project.class_(below)
                if summary and name in summary.methods:
                    targets.append(Symbol("function", below.path, summary.methods[name]))
        return targets

    def _instance_class(self, path: Path, function: FunctionSummary, name: str) -> Symbol | None:
        """The project class of a parameter (by annotation) or of a local (by the call that made it)."""
        spelled = function.locals.get(name)
        if spelled is None:
            annotation = next((a for n, a in function.params if n == name), "")
            spelled = _single_class(annotation)
        if not spelled:
            return None
        symbol = self.project.resolve(path, spelled)
        return symbol if symbol.kind == "class" else None


@lru_cache(maxsize=4096)
def _single_class(annotation: str) -> str | None:
    """The one class that an annotation such as `Optional[Cache]` or `"Cache | None"` names."""
    if not annotation:
        return None
    try:
        node: ast.expr = ast.parse(annotation, mode="eval").body
    except SyntaxError:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _single_class(node.value)
    if isinstance(node, ast.Subscript) and (dotted(node.value) or "").rpartition(".")[2] == "Optional":
        node = node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value is None:
        node = node.left
    return dotted(node)


def is_host_function(function: FunctionSummary) -> bool:
    """Whether a function is code that a person or a script runs, such as a training step or a converter."""
    name = function.qualname.rpartition(".")[2]
    if function.class_name and function.class_name.removesuffix("Fast").endswith(_HOST_CLASSES):
        return True
    return (
        function.is_host or name in _HOST_METHODS or name.startswith(("test_", "_load_", "load_", "convert_", "save_"))
    )
