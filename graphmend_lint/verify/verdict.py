"""The result of a verification: what each arm did, what was checked, and what that amounts to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["proven", "not proven", "could not run"]

SCHEMA = 1
EXIT_CODES: dict[Status, int] = {"proven": 0, "not proven": 1, "could not run": 2}


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was heard: a log record, a line of output, or a warning."""

    channel: str
    category: str
    text: str


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that left a call."""

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """One pass over the sequence of calls, eager or compiled: one entry per call."""

    messages: tuple[tuple[Message, ...], ...]
    raised: tuple[Raised | None, ...]
    recompiles: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Run:
        return cls(
            messages=tuple(tuple(Message(**message) for message in call) for call in record["messages"]),
            raised=tuple(Raised(**call) if call else None for call in record["raised"]),
            recompiles=tuple(record["recompiles"]),
        )


@dataclass(frozen=True, slots=True)
class Break:
    """A place where Dynamo ended a graph; `skipped` says that it gave up the whole frame there.

    `gb` is PyTorch's number for `type` where it has one. `times` counts the log entries: one for each frame
    on the call stack that had to break. `rule` is the code of the rule that reports the line, if one does.
    """

    gb: str | None
    type: str
    file: str
    line: int
    function: str
    code: str
    skipped: bool
    times: int = 1
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """What Dynamo makes of each input set, each from a fresh state.

    `breaks` is `max(0, graphs - 1)` per input set. `fullgraph` holds, per input set, None where
    `fullgraph=True` succeeded and the first line of the reason where it did not.
    """

    graphs: tuple[int, ...]
    sites: tuple[Break, ...]
    fullgraph: tuple[str | None, ...]

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Capture:
        sites = tuple(Break(**site) for site in record["sites"])
        return cls(tuple(record["graphs"]), sites, tuple(record["fullgraph"]))

    @property
    def breaks(self) -> tuple[int, ...]:
        return tuple(max(0, graphs - 1) for graphs in self.graphs)

    @property
    def total(self) -> int:
        return sum(self.breaks)

    @property
    def skipped(self) -> int:
        return sum(site.skipped for site in self.sites)

    @property
    def whole(self) -> bool:
        """True if every input set was captured by `fullgraph=True`."""
        return all(reason is None for reason in self.fullgraph)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds for one pass over the input sets, and the most memory that was in use, in bytes.

    `cold` is the first pass, compilation included, from empty caches; `steady` are later ones, `eager` those of
    the code uncompiled. `memory` is that of the GPU if the model is there, else that of the process.
    """

    cold: float
    steady: tuple[float, ...]
    eager: tuple[float, ...]
    memory: int

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Timing:
        return cls(record["cold"], tuple(record["steady"]), tuple(record["eager"]), record["memory"])


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test that a fix rewrites, and how often it was true and false: in the calls of the target, and in
    replays of the function around it with other values. `note` says why there were no replays.
    """

    path: str
    line: int
    code: str
    run: tuple[int, int]
    replay: tuple[int, int]
    note: str = ""

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Predicate:
        run, replay = record["run"], record["replay"]
        return cls(
            **{name: record[name] for name in ("path", "line", "code", "note")},
            run=(run[0], run[1]),
            replay=(replay[0], replay[1]),
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """The sides that were taken neither here nor there."""
        taken = zip(("true", "false"), self.run, self.replay, strict=True)
        return tuple(side for side, *times in taken if not any(times))


@dataclass(frozen=True, slots=True)
class Cause:
    """A fix that a difference comes from; `code` is None where only the file is known."""

    path: str
    line: int
    code: str | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Arm:
    """All that was measured of one version of the code."""

    eager: Run
    compiled: Run
    capture: Capture
    timing: Timing | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "timing": asdict(self.timing) if self.timing else None,
            "breaks": self.capture.total,
            "breaks_per_input_set": list(self.capture.breaks),
            "graphs_per_input_set": list(self.capture.graphs),
            "sites": [asdict(site) for site in self.capture.sites],
            "fullgraph": self.capture.whole,
            "fullgraph_reasons": list(self.capture.fullgraph),
            "recompiles": len(self.compiled.recompiles),
            "recompile_reasons": list(self.compiled.recompiles),
            "eager": _run_to_json(self.eager),
            "compiled": _run_to_json(self.compiled),
        }


def _run_to_json(run: Run) -> dict[str, Any]:
    return {
        "messages": [[asdict(message) for message in call] for call in run.messages],
        "raised": [asdict(raised) if raised else None for raised in run.raised],
    }


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold; `detail` names the first difference where it does not."""

    name: str
    passed: bool
    original: str
    fixed: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that the fixed arm saw in another version; nothing was written to it."""

    path: str
    fixes: int
    rules: tuple[str, ...] = ()
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a verification. `reason` is one line; `environment` says what it was proven on; `causes` is the
    smallest set of fixes found that makes a difference.
    """

    target: str
    status: Status
    reason: str
    checks: tuple[Check, ...] = ()
    original: Arm | None = None
    fixed: Arm | None = None
    files: tuple[ChangedFile, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    predicates: tuple[Predicate, ...] = ()
    causes: tuple[Cause, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.status]

    @property
    def before(self) -> int | None:
        """The breaks of the original, None where it could not be run."""
        return self.original.capture.total if self.original else None

    @property
    def after(self) -> int | None:
        """The breaks of the fixed version; without any fix those of the original."""
        return self.fixed.capture.total if self.fixed else self.before

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "target": self.target,
            "status": self.status,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "environment": self.environment,
            "checks": [asdict(check) for check in self.checks],
            "original": self.original.to_json() if self.original else None,
            "fixed": self.fixed.to_json() if self.fixed else None,
            "files": [asdict(file) for file in self.files],
            "predicates": [{**asdict(predicate), "missing": list(predicate.missing)} for predicate in self.predicates],
            "causes": [asdict(cause) for cause in self.causes],
            "notes": list(self.notes),
        }
