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
    IN_GUARD = "in-guard"
    SOURCE_NOT_EXACT = "source-not-exact"
    PREDICATE_NOT_ONE_ELEMENT = "predicate-not-one-element"
    PREDICATE_READS_DATA = "predicate-reads-data"
    PREDICATE_MIXED = "predicate-mixed"
    PREDICATE_MAY_RAISE = "predicate-may-raise"
    ARM_MAY_RAISE = "arm-may-raise"
    ARM_CALLS_UNKNOWN = "arm-calls-unknown"
    ARM_IS_COSTLY = "arm-is-costly"
    ARM_DRAWS_RANDOM = "arm-draws-random"
    ARM_CHANGES_STATE = "arm-changes-state"
    ARM_LEAVES = "arm-leaves"
    ARM_NOT_FOLLOWED = "arm-not-followed"
    ARM_READS_DATA = "arm-reads-data"
    SHAPES_DIFFER = "shapes-differ"
    DTYPES_DIFFER = "dtypes-differ"
    VALUES_NOT_TENSORS = "values-not-tensors"
    NAME_MAY_BE_UNBOUND = "name-may-be-unbound"
    NAMES_INTERTWINED = "names-intertwined"
    DATA_DEPENDENT_LOOP = "data-dependent-loop"
    TORCH_NOT_IMPORTED = "torch-not-imported"
    NOT_A_PREDICATE = "not-a-predicate"


ADVICE: dict[Reason, str] = {
    Reason.ARGUMENT_UNKNOWN: "annotate it, or pass a constant, a shape or a tensor",
    Reason.ARGUMENT_READS_DATA: "pass the tensor, or `t.item()` and nothing more; both are read when the graph runs",
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
    Reason.IN_GUARD: "the fix of the guard, a rule of its own, takes the message along",
    Reason.PREDICATE_NOT_ONE_ELEMENT: "reduce it with .any() or .all()",
    Reason.PREDICATE_READS_DATA: "compare tensors, such as (a == b).all(), where their shapes agree",
    Reason.PREDICATE_MIXED: "put the static tests first, joined by `and`, or into an `if` around it",
    Reason.PREDICATE_MAY_RAISE: "test what always has a value, such as .any() of a comparison",
    Reason.ARM_MAY_RAISE: "make it defined for all data (clamp the divisor or the index), or use torch.cond",
    Reason.ARM_CALLS_UNKNOWN: "move the call in front of the branch if it may run in any case, or use torch.cond",
    Reason.ARM_IS_COSTLY: "a selection would run it in any case; use torch.cond",
    Reason.ARM_DRAWS_RANDOM: "draw in front of the branch, if every run may draw",
    Reason.ARM_CHANGES_STATE: "compute a new value in the branch and store it behind it",
    Reason.ARM_LEAVES: "let both sides give a value, and leave behind them",
    Reason.ARM_NOT_FOLLOWED: "keep assignments of tensor expressions under the tensor test",
    Reason.ARM_READS_DATA: "keep tensors of one shape on both sides, or decide outside of the compiled region",
    Reason.SHAPES_DIFFER: "write both sides as functions of one tensor that keep its shape",
    Reason.DTYPES_DIFFER: "convert both sides to one dtype",
    Reason.VALUES_NOT_TENSORS: "give both sides a tensor, or decide outside of the compiled region",
    Reason.NAME_MAY_BE_UNBOUND: "give it a value in front of the branch",
    Reason.NAMES_INTERTWINED: "use different names on the two sides, and assign each once",
    Reason.DATA_DEPENDENT_LOOP: "use a fixed number of rounds, or torch.while_loop",
    Reason.TORCH_NOT_IMPORTED: "import torch in this file",
    Reason.NOT_A_PREDICATE: "use torch.logical_and, logical_or or logical_not on tensors of one shape",
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
class Built:
    """A new expression over others. `op`:

    "where"     a call of torch.where with the three parts (the edit's `detail` is how the file spells that function)
    "and"       `a & b & ...`          "or"  `a | b | ...`          "not"  `~a`
    "nonzero"   `a != 0`
    "tuple"     `a, b, ...`
    "call"      a call of the function that the edit's `detail` spells
    "then"      `a and b`, where `a` is no tensor
    an operator of Python ("+", "-", "*", "/", ...): `a + b`
    """

    op: str
    parts: tuple[Piece, ...]


#: An expression of the result: that at a span of the source, one given as text (a name), or a new one.
Piece = Span | str | Built


@dataclass(frozen=True, slots=True)
class Line:
    """One statement that an `if` is replaced by.

    With a `statement`: that statement of the source, with the expression at `place` in it replaced by `value` (as it
    stands where both are None). With a `target`: `target = value`, in the place of `statement` if there is one.
    `merged` are other statements that this one stands for: their comments go above it.
    """

    statement: Span | None
    place: Span | None = None
    value: Piece | None = None
    target: str = ""
    merged: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """What an `if` becomes: `lines`, under an `if` with the expression at `test` where a static part stays.

    `absorbed` are the statements right after the `if`, in its block, that the lines stand for as well.
    """

    test: Span | None
    lines: tuple[Line, ...]
    absorbed: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """One node to replace: the expression or statement at `span`, in the form that `kind` names.

    Kinds of the Defer transformation:
      "wrap"       the callee at `span` becomes `NAME(callee)`; NAME is `detail` (`deferred`, `late`, or the alarm)
      "format"     the f-string or `.format` call at `span` becomes `formatted(template, ...)`
      "percent"    the `template % values` at `span` becomes `percent(template, values)`
                   (in both, fields such as `t.item()` become `item(t)`: `detail` names these methods)
      "read"       the `t.item()` at `span` becomes `item(t)`; `detail` is the method
      "when"       the test of an `if` at `span`, or its last part, becomes `detail := when(test)`
      "unless"     likewise for `not test`: `detail := unless(test)`
                   (of both, `value` is what is handed over where that is not the test)
      "guard"      the statement at `span` goes under `if not torch.compiler.is_compiling():` (`detail` is the
                   spelling of the predicate)
    Kinds of the Trap transformation:
      "fail"       the `raise E(...)` at `span` becomes `detail(fail)(E, ...)`
      "fail-from"  the `raise E(...) from C` at `span` becomes `detail(fail_from)(C, E, ...)`
      "unnest"     what the `if` at `span` has under `else` or `elif` goes behind it
      "assert"     the `assert P, M` at `span` becomes `if __debug__ and (detail := unless(P)):` with
                   `detail(fail)(AssertionError, M)`; `value` is what is handed over where that is not P
      "assert-not" likewise for `assert not P, M`, with `when(P)`
      "async"      the statement at `span` becomes `value`, a call of the function that `detail` spells
    Kinds of the Where transformation; `detail` is how the file spells torch.where:
      "select"     the `if` at `span` becomes `selection`
      "choose"     the expression at `span` becomes `value`
    Of a comment that silences nothing:
      "comment"    the part of the comment at `span` becomes `detail`
    """

    kind: str
    span: Span
    detail: str = ""
    selection: Selection | None = None
    value: Piece | None = None


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
