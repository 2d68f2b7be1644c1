"""Runs the target's calls with its predicates watched, then replays the functions around them: in both versions,
on the arguments that reached them and on others that push the predicates to their other side.
"""

from __future__ import annotations

import ast
import contextlib
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import torch

from graphmend_lint.verify.judge import plain
from graphmend_lint.verify.worker import compare
from graphmend_lint.verify.worker.calls import (
    Left,
    Raised,
    call,
    changing_state,
    check_memory,
    copied,
    described,
    random_state,
    shared_memory,
)
from graphmend_lint.verify.worker.job import Job
from graphmend_lint.verify.worker.leaves import detached, leaves_of
from graphmend_lint.verify.worker.messages import Ear, listening
from graphmend_lint.verify.worker.push import pushes
from graphmend_lint.verify.worker.subject import Subject, seed, state_of
from graphmend_lint.verify.worker.watch import Around, Call, Steps, Test, Watch

_MOST_BYTES = 256 * 2**20
# For all replays of a target together.
_SECONDS = 60.0

#: The watch of this process, installed before the target was imported.
current: list[Watch] = []


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay left behind, raised and said."""

    left: dict[str, compare.Leaves]
    raised: Raised | None
    messages: list[tuple[str, str, str]]

    def unlike(self, other: Outcome) -> str:
        """The first difference, in words."""
        if self.raised != other.raised:
            return f"{_in_words(self.raised)}, and {_in_words(other.raised)}"
        if self.messages != other.messages:
            return f"messages {self._texts()}, and {other._texts()}"
        return next(iter(compare.compare_calls(self.left, other.left, compare.EXACT)[0]), "")

    def _texts(self) -> list[str]:
        return [text for *_, text in self.messages]


def observe(job: Job, subject: Subject, packages: Collection[str]) -> dict[str, Any]:
    """The sides that each predicate took in the target's calls and in replays, and where versions disagree.

    What the calls alone show is written before the replays begin: other values may make code crash or hang.
    """
    watch = current[0]
    replays = _Replays(job, watch)
    with listening(packages) as ear:
        watch.keep = replays.keep
        for number, pair in enumerate(subject.inputs * job.options["calls"], 1):
            job.enter(f"sides run, call {number}")
            call(job, subject, subject.model, pair)
        watch.keep = None
        run = [list(test.times) for test in watch.tests]
        job.write("observed", _record(watch, run, replays))
        replays.run(ear)
    return _record(watch, run, replays)


def _record(watch: Watch, run: list[list[int]], replays: _Replays) -> dict[str, Any]:
    return {
        "predicates": [
            {
                "path": path,
                "line": watch.tests[number].line,
                "code": watch.tests[number].code,
                "run": run[number],
                "replay": [
                    after - before for before, after in zip(run[number], watch.tests[number].times, strict=True)
                ],
                "note": around.note if around else "it is not in a function",
            }
            for number, path, around in _shown(watch)
        ],
        "differences": replays.differences,
    }


def _shown(watch: Watch) -> Iterator[tuple[int, str, Around | None]]:
    """Every whole predicate, and those of its parts that are tensors."""
    owners = {number: around for around in watch.functions for number in around.tests}
    path = ""
    for number, test in enumerate(watch.tests):
        path = watch.whole.get(number, path)
        if number in watch.whole or test.tensor:
            yield number, path, owners.get(number)


class _Replays:
    """Replays of watched functions, in both versions."""

    def __init__(self, job: Job, watch: Watch) -> None:
        self._job, self._watch = job, watch
        self.differences: list[dict[str, Any]] = []

    def keep(self, values: dict[str, Any]) -> dict[str, Any] | None:
        """A copy of the variables at the entry of a function; None where they are too large."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in _tensors_of(values))
        return _copied_values(values) if size <= _MOST_BYTES else None

    def run(self, ear: Ear) -> None:
        deadline = time.monotonic() + _SECONDS
        for around in self._watch.functions:
            if around.tests and not around.note:
                self._job.enter(f"sides run, replays of {around.name}")
                try:
                    with _until(deadline):
                        self._replay(around, ear, deadline)
                except (_NotReplayed, _TooLong) as reason:
                    around.note = str(reason)

    def _replay(self, around: Around, ear: Ear, deadline: float) -> None:
        if not around.replays:
            raise _NotReplayed("a generator or coroutine is not replayed")
        if not around.calls:
            raise _NotReplayed(f"{around.name} was not called")
        versions = _Versions(around, self._watch.files[around.path])
        reached: set[frozenset[tuple[int, bool]]] = set()
        for known in around.calls:
            if known.values is None:
                raise _NotReplayed("its arguments are too large to keep")
            for pushed, push in pushes(_arguments(known.code, known.values)):
                if time.monotonic() > deadline:
                    raise _NotReplayed(f"not all values were tried within {_SECONDS:g} s")
                replay = _Replay(self._job, known, push, ear)
                self._watch.seen = set()
                one = replay.once(versions.watched(known))
                sides = frozenset(self._watch.seen)
                difference = one.unlike(replay.once(versions.fixed(known)))
                if not difference and sides not in reached:
                    reached.add(sides)
                    difference = replay.compiled(versions, one)
                if difference:
                    # One is enough to refuse the fix.
                    self._note(around, pushed, difference)
                    return

    def _note(self, around: Around, pushed: str, difference: str) -> None:
        tests = [self._watch.tests[number] for number in around.tests]
        text = f"{around.name} with {pushed}: {difference}"
        self.differences.append({"path": around.path, "line": _line(tests), "text": text})


_Make = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class _Replay:
    """One kept call, its arguments changed by `push`."""

    job: Job
    known: Call
    push: Callable[[Any], None]
    ear: Ear

    def compiled(self, versions: _Versions, expected: Outcome) -> str:
        """Compiled, the fixed version does what the original does eagerly, unless the compiled original differs too."""
        difference = expected.unlike(self._once_compiled(versions.fixed(self.known)))
        if difference and expected.unlike(self._once_compiled(versions.plain(self.known))):
            return ""
        return difference and f"compiled: {difference}"

    def _once_compiled(self, make: _Make) -> Outcome:
        torch._dynamo.reset()
        dynamic = self.job.options["dynamic"]
        return self.once(lambda values: torch.compile(make(values), backend="eager", dynamic=dynamic))

    def once(self, make: _Make) -> Outcome:
        """The call, with a function and arguments of its own."""
        assert self.known.values is not None
        values = _copied_values(self.known.values)
        function = make(values)
        given = _arguments(self.known.code, values)
        self.push(given)
        args, kwargs = _bound(self.known.code, given)
        left: Left = {}
        output, raised = None, None
        self.ear.take()
        seed(self.job.options["seed"])
        with torch.set_grad_enabled(self.job.options["grad"]):
            try:
                output = function(*args, **kwargs)
                left["outputs"] = detached(output)
            except Exception as error:
                check_memory(error)
                raised = described(error)
        left["random"] = detached(random_state(self.job))
        left["arguments"] = detached(given)
        left["state"] = [leaf for part in _modules_of(given) for leaf in changing_state(part)]
        left |= shared_memory(_state(given), given, output)
        messages = [(heard["channel"], heard["category"], plain(heard["text"])) for heard in self.ear.take()]
        return Outcome(compare.stored(left), raised, messages)


def _line(tests: list[Test]) -> int:
    return min(test.line for test in tests)


class _NotReplayed(Exception):
    """A function cannot be replayed; the message says why."""


class _TooLong(BaseException):
    """A replay does not end. No `except Exception` of the user's code stops this one."""


@contextlib.contextmanager
def _until(deadline: float) -> Iterator[None]:
    """Interrupts what runs some time after the deadline, where the system can do that."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(_: int, __: FrameType | None) -> None:
        raise _TooLong("a replay did not end in time")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, deadline - time.monotonic()) + _SECONDS / 4)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Versions:
    """A function of the original and of the fixed source, for the variables that surrounded a call."""

    def __init__(self, around: Around, entry: dict[str, Any]) -> None:
        original, fixed = Path(around.path).read_bytes(), Path(entry["fixed"]).read_bytes()
        self._plain = _code_at(compile(original, around.path, "exec", dont_inherit=True), around.steps)
        self._fixed = _code_at(compile(fixed, around.path, "exec", dont_inherit=True), around.steps)
        self._imports = _new_imports(original, fixed)
        self._spaces: dict[int, dict[str, Any]] = {}

    def watched(self, known: Call) -> _Make:
        return lambda values: _function(known.code, known.namespace, values)

    def plain(self, known: Call) -> _Make:
        return lambda values: _function(self._plain, known.namespace, values)

    def fixed(self, known: Call) -> _Make:
        return lambda values: _function(self._fixed, self._space(known.namespace), values)

    def _space(self, namespace: dict[str, Any]) -> dict[str, Any]:
        """The module's globals, with what only the fixed source imports."""
        if id(namespace) not in self._spaces:
            space = dict(namespace)
            exec(self._imports, space)
            self._spaces[id(namespace)] = space
        return self._spaces[id(namespace)]


def _new_imports(original: bytes, fixed: bytes) -> CodeType:
    known = {ast.dump(node) for node in ast.parse(original).body}
    new = [node for node in ast.parse(fixed).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    module = ast.Module([node for node in new if ast.dump(node) not in known], [])
    return compile(module, "<imports>", "exec", dont_inherit=True)


def _code_at(code: CodeType, steps: Steps) -> CodeType:
    for name, ordinal in steps:
        inner = [part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == name]
        if ordinal >= len(inner):
            raise _NotReplayed(f"{name} is not found in both versions")
        code = inner[ordinal]
    return code


def _function(code: CodeType, namespace: dict[str, Any], values: dict[str, Any]) -> Any:
    missing = [name for name in code.co_freevars if name not in values]
    if missing:
        raise _NotReplayed(f"the variable {missing[0]} around {code.co_name} is not known")
    cells = tuple(CellType(values[name]) for name in code.co_freevars)
    return FunctionType(code, namespace, code.co_name, None, cells)


def _copied_values(values: dict[str, Any]) -> dict[str, Any]:
    """Copies of what a call may change; classes, functions and modules of Python are what they are."""
    shared = {name: value for name, value in values.items() if isinstance(value, (type, FunctionType, ModuleType))}
    copies: dict[str, Any] = copied({name: value for name, value in values.items() if name not in shared})
    return copies | shared


def _count(code: CodeType) -> int:
    """The number of parameters."""
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)


def _bound(code: CodeType, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call that gives the parameters these values."""
    positional = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount : _count(code)])
    args = [values[name] for name in positional]
    kwargs = {name: values[name] for name in keywords}
    if code.co_flags & 0x04:
        args += values[rest.pop(0)]
    if code.co_flags & 0x08:
        kwargs |= values[rest.pop(0)]
    return args, kwargs


def _arguments(code: CodeType, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in code.co_varnames[: _count(code)]}


def _modules_of(values: dict[str, Any]) -> list[torch.nn.Module]:
    return [value for value in values.values() if isinstance(value, torch.nn.Module)]


def _state(values: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: value for module in _modules_of(values) for name, value in state_of(module)}


def _tensors_of(values: dict[str, Any]) -> list[torch.Tensor]:
    given = [leaf.value for leaf in leaves_of(values) if isinstance(leaf.value, torch.Tensor)]
    return [*given, *_state(values).values()]


def _in_words(raised: Raised | None) -> str:
    return f"{raised['type'].removeprefix('builtins.')}({raised['text']!r})" if raised else "no exception"


def install(manifest: Path) -> None:
    """Watches the predicates that the manifest names, in modules that are imported from here on."""
    watch = Watch(manifest)
    watch.install()
    current.append(watch)
