"""What the linter has to say about a place in the source: a finding, with a plan or with a decline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

Confidence = Literal["definite", "likely"]
Fix = Literal["safe", "unsafe", "none"]


class Reason(str, Enum):
    """Why a finding has no fix. The values are stable ids; `ADVICE` says what a person can do."""

    ARGUMENT_UNKNOWN = "argument-unknown"
    ARGUMENT_READS_DATA = "argument-reads-data"
    ARGUMENT_CALLS_UNKNOWN = "argument-calls-unknown"
    STAR_ARGUMENTS = "star-arguments"
    KEYWORD_NOT_CARRIED = "keyword-not-carried"
    VALUE_IS_USED = "value-is-used"
    LOGGER_NOT_RESOLVED = "logger-not-resolved"
    LOGGER_MADE_HERE = "logger-made-here"
    INSIDE_TRY = "inside-try"
    GENERATOR = "generator"
    ASYNC_FUNCTION = "async-function"
    TORCHSCRIPT = "torchscript"
    TARGET_TORCH_TOO_OLD = "target-torch-too-old"
    ARGUMENT_MAY_RAISE = "argument-may-raise"
    PREDICATE_NOT_CARRIED = "predicate-not-carried"
    BRANCH_DOES_MORE = "branch-does-more"
    GUARD_HAS_ELSE = "guard-has-else"
    EXCEPTION_NOT_CARRIED = "exception-not-carried"
    GUARD_PROTECTS = "guard-protects"
    GUARD_AFTER_CHANGE = "guard-after-change"
    SOURCE_NOT_EXACT = "source-not-exact"


ADVICE: dict[Reason, str] = {
    Reason.ARGUMENT_UNKNOWN: "annotate it, or pass a constant, a shape or a tensor",
    Reason.ARGUMENT_READS_DATA: "pass the tensor itself; it is formatted when the graph runs",
    Reason.ARGUMENT_CALLS_UNKNOWN: "compute it before the call, outside the compiled region",
    Reason.STAR_ARGUMENTS: "spell the arguments out",
    Reason.KEYWORD_NOT_CARRIED: "drop the keyword, or move the call out of the compiled region",
    Reason.VALUE_IS_USED: "make the call a statement of its own",
    Reason.LOGGER_NOT_RESOLVED: "create the logger at module level with logging.getLogger",
    Reason.LOGGER_MADE_HERE: "create the logger once, at module level",
    Reason.INSIDE_TRY: "move the call out of the try block",
    Reason.GENERATOR: "move the call out of the generator",
    Reason.ASYNC_FUNCTION: "move the call out of the coroutine",
    Reason.TORCHSCRIPT: "TorchScript cannot compile the runtime's call; move the call out of the scripted function",
    Reason.TARGET_TORCH_TOO_OLD: "raise target-torch to 2.11 or newer",
    Reason.ARGUMENT_MAY_RAISE: "pass tensors, shapes and whole reductions such as sum()",
    Reason.PREDICATE_NOT_CARRIED: "test one tensor, with static tests before it",
    Reason.BRANCH_DOES_MORE: "keep only the exception under the tensor test",
    Reason.GUARD_HAS_ELSE: "end the guard with the exception and put the rest after it",
    Reason.EXCEPTION_NOT_CARRIED: "raise a class that is defined at module level",
    Reason.GUARD_AFTER_CHANGE: "check first: an exception in a graph loses what the graph has not written back",
    Reason.GUARD_PROTECTS: "check before the compiled region, or make that operation safe for all data",
    Reason.SOURCE_NOT_EXACT: "normalise the file's line ends",
}


@dataclass(frozen=True, slots=True)
class Decline:
    """Why there is no fix: `reason` is the stable id, `text` names the obstacle in the user's own code."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """A range in the source: 1-based lines, 0-based columns in characters, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Edit:
    """One node to replace: the expression or statement at `span`, in the form that `kind` names.

    Kinds of the Defer transformation:
      "wrap"       the callee at `span` becomes `NAME(callee)`; NAME is `detail` (`deferred`, `late`, or the alarm)
      "format"     the f-string or `.format` call at `span` becomes `formatted(template, ...)`
      "percent"    the `template % values` at `span` becomes `percent(template, values)`
      "when"       the test of an `if` at `span`, or its last part, becomes `detail := when(test)`
      "unless"     likewise for `not test`: `detail := unless(test)`
      "fail"       the `raise E(...)` at `span` becomes `detail(fail)(E, ...)`
      "guard"      the statement at `span` goes under `if not torch.compiler.is_compiling():` (`detail` is the
                   spelling of the predicate)
    """

    kind: str
    span: Span
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A fix whose safety was established: edits, and the names of the runtime module that they need.

    `site` is the span of the call that is reported; an edit may lie outside of it (the test of the `if` around it).
    Two plans may share an edit (two messages under one tensor test); equal edits are applied once.
    """

    site: Span
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that breaks the graph.

    `span` is that of the whole call. `entry` says why the line is in a compiled region, None where no entry is known.
    `gb` are PyTorch's graph-break numbers ("GB0291"). Exactly one of `plan` and `decline` is set.
    """

    code: str
    rule: str
    path: str
    span: Span
    message: str
    confidence: Confidence
    fix: Fix
    decline: Decline | None
    gb: tuple[str, ...]
    entry: str | None
    plan: Plan | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        return (self.path, self.span.line, self.span.column, self.code)

    def to_json(self) -> dict[str, Any]:
        """The finding as the `json` report prints it; columns count from 1, as editors do."""
        return {
            "code": self.code,
            "rule": self.rule,
            "path": self.path,
            "line": self.span.line,
            "column": self.span.column + 1,
            "end_line": self.span.end_line,
            "end_column": self.span.end_column + 1,
            "message": self.message,
            "confidence": self.confidence,
            "fix": self.fix,
            "decline": None if self.decline is None else {"reason": self.decline.reason, "text": self.decline.text},
            "gb": list(self.gb),
            "entry": self.entry,
        }
