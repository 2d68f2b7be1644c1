"""Running a program eagerly or compiled, and noting all that it does."""

from __future__ import annotations

import ast
import contextlib
import copy
import difflib
import importlib
import io
import logging
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from unittest import mock

import torch
import torch._dynamo.guards
import torch._dynamo.symbolic_convert
import torch._dynamo.utils

#: What any compiled program shows differently (see the runtime's own documentation).
_GRAD_FN = re.compile(r",\s*grad_fn=<\w+>")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _not_compiled(function: _Function) -> _Function:
    """Keep Dynamo out of what listens to the programs."""
    return cast("_Function", torch.compiler.disable(function))  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Seen:
    """What one call did.

    `said` has prints, log records and warnings in their order; `shared` tells which tensors of the result are, or share
    memory with, an argument, something that the module holds, or one another.
    """

    error: tuple[str, str, Any] | None
    result: Any
    shared: Any
    said: list[tuple[Any, ...]]
    arguments: Any
    state: Any
    random: tuple[float, float]
    gradients: Any


@dataclass(frozen=True)
class Run:
    """What a program did on all its inputs, where Dynamo ended the graph, and what it compiled.

    `compiled` has an id for each time that a frame was compiled, as Dynamo gives them: "0/1" is frame 0, again.
    """

    seen: list[Seen]
    breaks: list[str]
    compiled: list[str]

    @property
    def recompiled(self) -> list[str]:
        """The ids of frames that were compiled again."""
        return [name for name in self.compiled if not name.endswith("/0")]

    def difference(self, other: Run, besides: str = "") -> str:
        """The first thing that differs besides the field of that name, "" if nothing does."""
        if len(self.seen) != len(other.seen):
            return f"{len(self.seen)} calls, {len(other.seen)} calls"
        for number, (mine, theirs) in enumerate(zip(self.seen, other.seen, strict=True)):
            for field in (f for f in fields(Seen) if f.name != besides):
                first, second = getattr(mine, field.name), getattr(theirs, field.name)
                if repr(first) != repr(second):
                    return f"{field.name} of input {number}:\n{first}\n{second}"
        return ""


@dataclass(frozen=True)
class Program:
    """The files of a program in `folder`; lines are reported as those of `origin`, the text that was fixed."""

    folder: Path
    main: str
    files: dict[str, str]
    origin: dict[str, str]

    def line(self, file: str, line: int) -> int:
        """The line of the original text that a line of this program comes from."""
        name = Path(file).resolve().relative_to(self.folder.resolve()).as_posix()
        return _lines(self.origin[name], self.files[name]).get(line, -line)


def _lines(before: str, after: str) -> dict[int, int]:
    """The lines of `after` with those of `before` that they come from: a fix adds an import, and may wrap a call.

    Where a fix takes statements away, the lines that are left as they were.
    """
    found: dict[int, int] = {}
    if len(_statements(before)) != len(_statements(after)):
        matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
        for block in matcher.get_matching_blocks():
            found |= {block.b + offset + 1: block.a + offset + 1 for offset in range(block.size)}
        return found
    for old, new in zip(_statements(before), _statements(after), strict=True):
        for line in range(new.lineno, (new.end_lineno or 0) + 1):
            found[line] = min(old.lineno + line - new.lineno, old.end_lineno or 0)
    return found


def _statements(source: str) -> list[ast.stmt]:
    """The statements of a program, outer ones first, without the import of the runtime."""
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    return [s for s in statements if not (isinstance(s, ast.ImportFrom) and s.module == "graphmend_lint.runtime")]


def run(
    program: Program,
    *,
    compiled: bool,
    backend: str = "eager",
    options: frozenset[str] = frozenset(),
    graded: bool = False,
) -> Run:
    """Run a program in a fresh state: modules, loggers, warnings, random numbers and Dynamo.

    `graded`: with gradients of all arguments that may have one.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.clear_compilation_metrics()
    # Dynamo looks up a function's globals by the name of its module, once per process; ours come again under that name.
    torch._dynamo.symbolic_convert._import_module.cache_clear()
    # How long the guards take is of no interest here, and measuring it empties the processor's caches each time.
    unmeasured = mock.patch.object(torch._dynamo.guards, "profile_guard_manager", return_value=0.0)
    with unmeasured, _loaded(program, backend) as module, _breaks(program) as breaks:
        _seed()
        function, inputs = module.build()
        call = function
        if compiled and not _is_compiled(function):
            call = torch.compile(function, backend=backend, dynamic=True if "dynamic" in options else None)
        seen = []
        for arguments in inputs:
            if "reset" in options:
                torch._dynamo.reset()
            given = copy.deepcopy(arguments)
            if graded:
                _ask_for_gradients(given)
            with torch.compiler.set_stance("default" if compiled else "force_eager"):
                seen.append(_observe(program, function, call, given))
    metrics = torch._dynamo.utils.get_compilation_metrics()
    return Run(seen, sorted(set(breaks) - {"outside"}), [str(metric.compile_id) for metric in metrics])


def _ask_for_gradients(arguments: Any) -> None:
    for tensor in _tensors(arguments):
        if tensor.is_leaf and (tensor.is_floating_point() or tensor.is_complex()):
            tensor.requires_grad_()


def _is_compiled(function: Any) -> bool:
    """Whether the program itself compiles what it gives."""
    return (
        hasattr(function, "_torchdynamo_orig_callable")
        or type(function).__name__ == "OptimizedModule"
        or getattr(function, "_compiled_call_impl", None) is not None
        or getattr(function, "is_compiled_inside", False)
    )


@contextlib.contextmanager
def _loaded(program: Program, backend: str) -> Iterator[Any]:
    """The program's main module, imported anew; `torch.compile` in it uses `backend` unless it says otherwise."""
    known, loggers = set(sys.modules), set(logging.Logger.manager.loggerDict)
    original, methods = torch.compile, set(vars(logging.Logger))
    sys.path.insert(0, str(program.folder))
    torch.compile = partial(original, backend=backend)
    importlib.invalidate_caches()
    try:
        with warnings.catch_warnings():
            yield importlib.import_module(program.main.removesuffix(".py"))
    finally:
        torch.compile = original
        sys.path.remove(str(program.folder))
        own = {name.removesuffix(".py").split("/")[0] for name in program.files}
        for name in [n for n in set(sys.modules) - known if n.split(".")[0] in own]:
            del sys.modules[name]
            _forget_module(name)
        for name in set(logging.Logger.manager.loggerDict) - loggers:
            if not name.startswith("torch"):
                del logging.Logger.manager.loggerDict[name]
        for name in set(vars(logging.Logger)) - methods:
            delattr(logging.Logger, name)


def _forget_module(name: str) -> None:
    """Take back what Dynamo put into the globals of functions that it traced for the module `name`."""
    alias = "__import_" + name.replace(".", "_dot_")
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            vars(module).pop(alias, None)


def _seed() -> None:
    torch.manual_seed(0)
    random.seed(0)


# -- what is said ----------------------------------------------------------------------------------------------------


class _Stream(io.StringIO):
    def __init__(self, name: str, said: list[tuple[Any, ...]]) -> None:
        super().__init__()
        self.name, self.said = name, said

    @_not_compiled
    def write(self, text: str) -> int:
        if self.said and self.said[-1][0] == self.name:
            text = self.said.pop()[1] + text
        self.said.append((self.name, _text(text)))
        return len(text)


class _Records(logging.Handler):
    def __init__(self, said: list[tuple[Any, ...]], program: Program) -> None:
        super().__init__(logging.DEBUG)
        self.said, self.program = said, program

    @_not_compiled
    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("torch"):
            return
        place = _place(self.program, record.pathname, record.lineno)
        text = _text(self.format(record))
        self.said.append(("log", record.name, record.levelname, text, place, record.funcName))


def _text(text: str) -> str:
    return _ADDRESS.sub("0x", _GRAD_FN.sub("", text))


def _place(program: Program, file: str, line: int) -> tuple[str, int]:
    """Where a message says that it comes from, in terms of the original program; outside of it, the file alone."""
    try:
        return Path(file).name, program.line(file, line)
    except (KeyError, ValueError):
        return Path(file).name, 0


@contextlib.contextmanager
def _listening(program: Program, said: list[tuple[Any, ...]]) -> Iterator[None]:
    root, handler = logging.getLogger(), _Records(said, program)
    level, others = root.level, root.handlers[:]

    @_not_compiled
    def show(message: Any, category: Any, filename: str, line: int, *_: Any) -> None:
        if not filename.startswith(torch.__path__[0]):
            place = _place(program, filename, line)
            said.append(("warning", category.__name__, _text(str(message)), place))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show  # type: ignore[assignment]
        root.handlers[:] = [handler]
        root.setLevel(logging.INFO)
        out, err = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Stream("stdout", said), _Stream("stderr", said)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err
            root.handlers[:] = others
            root.setLevel(level)


# -- one call --------------------------------------------------------------------------------------------------------


def _observe(program: Program, function: Any, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Seen:
    _seed()
    said: list[tuple[Any, ...]] = []
    result, error, gradients, shared = None, None, None, None
    with _listening(program, said):
        try:
            result = call(*arguments)
            picture, shared = plain(result), _shared(function, result, arguments)
            gradients = _gradients(function, result, arguments)
        except Exception as exception:
            picture = None
            error = _error(exception)
    drawn = (float(torch.rand(())), random.random())
    return Seen(error, picture, shared, said, plain(arguments), _state(function), drawn, gradients)


def _error(exception: Exception) -> tuple[str, str, Any]:
    """The class, the text and the arguments, without what Dynamo adds to an exception that it meets while tracing."""
    arguments = [_without_trace(a) if isinstance(a, str) else a for a in exception.args]
    return type(exception).__qualname__, _without_trace(str(exception)), plain([arguments, vars(exception)])


def _without_trace(text: str) -> str:
    return text.split("\n\nfrom user code")[0]


def _gradients(function: Any, result: Any, arguments: Any) -> Any:
    losses = [t.double().sum() for t in _tensors(result) if t.requires_grad and t.is_floating_point()]
    if not losses:
        return None
    torch.autograd.backward(sum(losses[1:], losses[0]))
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    leaves = [*parameters, *(t for t in _tensors(arguments) if t.is_leaf)]
    found = [plain(t.grad) for t in leaves]
    for leaf in leaves:
        leaf.grad = None
    return found


def _shared(function: Any, result: Any, arguments: Any) -> Any:
    """For each tensor of the result: whether it has a gradient, and the tensors that it is or shares memory with."""
    made = list(_tensors(result))
    held = _held(function) if isinstance(function, torch.nn.Module) else {}
    others = {f"argument {n}": t for n, t in enumerate(_tensors(arguments))} | held
    found = []
    for number, tensor in enumerate(made):
        known = others | {f"result {n}": t for n, t in enumerate(made[:number])}
        relations = {name: _relation(tensor, other) for name, other in known.items()}
        found.append((tensor.requires_grad, {name: relation for name, relation in relations.items() if relation}))
    return found


def _relation(first: torch.Tensor, second: torch.Tensor) -> str:
    if first is second:
        return "is"
    own = first.untyped_storage().data_ptr()
    return "shares memory" if own and own == second.untyped_storage().data_ptr() else ""


def _held(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The tensors that a module holds, with those that are not in its state."""
    found: dict[str, torch.Tensor] = {}
    for prefix, part in module.named_modules():
        own = {**vars(part), **part._parameters, **part._buffers}
        found |= {f"{prefix}.{name}": value for name, value in own.items() if isinstance(value, torch.Tensor)}
    return {name.replace("_orig_mod.", ""): tensor for name, tensor in found.items()}


def _state(function: Any) -> Any:
    if not isinstance(function, torch.nn.Module):
        return None
    held = _held(function)
    named = {name: plain(tensor) for name, tensor in sorted(held.items())}
    same = [(a, b, _relation(held[a], held[b])) for a in held for b in held if a < b and _relation(held[a], held[b])]
    saved = sorted(key.replace("_orig_mod.", "") for key in function.state_dict())
    attributes = {
        k: plain(v)
        for k, v in vars(function).items()
        if not k.startswith("_") and (v is None or isinstance(v, (bool, int, float, str, list, dict)))
    }
    return {**named, "same": sorted(same), "saved": saved, **attributes}


def plain(value: Any) -> Any:
    """A picture of a value that compares exactly: tensors by type, shape and bits."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach().contiguous()
        bits = tensor.reshape(-1).tolist() if not tensor.is_complex() else repr(tensor)
        return (str(value.dtype), tuple(value.shape), bits)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(item) for item in value])
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _ADDRESS.sub("0x", repr(value))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


# -- graph breaks ----------------------------------------------------------------------------------------------------


class _Events(logging.Handler):
    def __init__(self, program: Program, places: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self.program, self.places = program, places

    def emit(self, record: logging.LogRecord) -> None:
        self.places.append(_event(self.program, record.getMessage()))


def _event(program: Program, message: str) -> str:
    """`file:line` of a break that Dynamo reports, the line being the innermost one of the program."""
    folder = re.escape(str(program.folder.resolve()))
    traced = message.rpartition("User code traceback:")
    found = re.findall(rf'File "({folder}/[^"]*)", line (\d+)', traced[2]) if traced[1] else []
    found = found or re.findall(rf"user code at ({folder}/[^\n:]*):(\d+)", message)
    if not found:
        return "outside"
    file, line = found[-1]
    return f"{Path(file).name}:{program.line(file, int(line))}"


@contextlib.contextmanager
def _breaks(program: Program) -> Iterator[list[str]]:
    """Where Dynamo ends the graph, in a list that fills while the program runs."""
    places: list[str] = []
    logs = [logging.getLogger(f"torch._dynamo.{name}.__graph_breaks") for name in ("symbolic_convert", "convert_frame")]
    kept = [(log.handlers, log.propagate, log.level) for log in logs]
    for log in logs:
        log.handlers, log.propagate = [_Events(program, places)], False
        log.setLevel(logging.DEBUG)
    try:
        yield places
    finally:
        for log, (handlers, propagate, level) in zip(logs, kept, strict=True):
            log.handlers, log.propagate = handlers, propagate
            log.setLevel(level)
