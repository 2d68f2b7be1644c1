"""The rules of the verdict, on arms made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graphmend_lint.verify import Options
from graphmend_lint.verify.judge import verdict
from graphmend_lint.verify.verdict import Arm, Break, Capture, Message, Raised, Run, Verdict

HELLO, WORLD = Message("log", "m WARNING", "hello"), Message("stdout", "", "world\n")
SITE = Break("GB0291", "a logger", "/m.py", 3, "forward", "logger.info()", skipped=False)
EQUAL = {"equal": True, "differences": [], "largest": 0.0}
DIFFERENT = {"equal": False, "differences": ["call 1, outputs: values differ"], "largest": 1.0}
COMPARED = {
    "eager": EQUAL,
    "compiled": EQUAL,
    "original_compiled_to_eager": EQUAL,
    "fixed_compiled_to_eager": EQUAL,
}


def arm(graphs: int, *messages: Message, sites: int = 0, **more: Any) -> Arm:
    run = Run((messages,), (more.pop("raised", None),), more.pop("recompiles", ()))
    return Arm(run, run, Capture((graphs,), (SITE,) * sites, (more.pop("refusal", None),)))


def judged(original: Arm, fixed: Arm, **compared: dict[str, Any]) -> Verdict:
    return verdict("m:build", original, fixed, {**COMPARED, **compared}, (), Options(), {})


def failed(found: Verdict) -> list[str]:
    return [check.name for check in found.checks if not check.passed]


ORIGINAL = arm(3, HELLO, WORLD, sites=1)


def test_fewer_breaks_and_nothing_else_is_proven() -> None:
    found = judged(ORIGINAL, arm(1, HELLO, WORLD))
    assert (found.status, found.reason) == ("proven", "graph breaks 2 -> 0, nothing else changed")


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((HELLO,), "lost: stdout 'world\\n'"),
        ((HELLO, WORLD, WORLD), "heard 2 times, not 1: stdout 'world\\n'"),
        ((WORLD, HELLO), "other order: log m WARNING 'hello'"),
        ((HELLO, WORLD, Message("warning", "UserWarning", "new")), "new: warning UserWarning 'new'"),
        ((replace(HELLO, category="m ERROR"), WORLD), "lost: log m WARNING 'hello'"),
    ],
)
def test_messages_are_compared_by_text_number_and_order(messages: tuple[Message, ...], words: str) -> None:
    found = judged(ORIGINAL, arm(1, *messages))
    assert failed(found) == ["eager messages", "compiled messages"]
    assert words in found.reason
    assert found.reason.endswith("(and 1 more difference)")


def test_addresses_and_the_history_of_tensors_do_not_count() -> None:
    one = Message("stdout", "", "<A object at 0x7f00aa> tensor([1.], grad_fn=<AddBackward0>)\n")
    two = Message("stdout", "", "<A object at 0x7f11bb> tensor([1.], grad_fn=<CompiledFunctionBackward>)\n")
    assert judged(arm(3, one, sites=1), arm(1, two)).status == "proven"


def test_an_exception_of_another_text_is_a_difference() -> None:
    found = judged(
        arm(3, sites=1, raised=Raised("builtins.ValueError", "a")),
        arm(1, raised=Raised("builtins.ValueError", "b")),
    )
    assert failed(found) == ["eager exceptions", "compiled exceptions"]
    assert "ValueError('a'), and ValueError('b')" in found.reason


@pytest.mark.parametrize(
    ("before", "after", "better"),
    [
        (arm(3, sites=2), arm(2, sites=1), True),
        (arm(3, sites=2), arm(3, sites=1), True),
        (arm(3, sites=2), arm(3, sites=2), False),
        (arm(3, sites=1), arm(4, sites=0), False),
        (arm(1), arm(1), False),
    ],
)
def test_fewer_breaks_by_count_or_by_log(before: Arm, after: Arm, better: bool) -> None:
    assert ("graph breaks" not in failed(judged(before, after))) is better


def test_a_frame_no_longer_given_up_is_better_although_more_breaks_show() -> None:
    given_up = Arm(ORIGINAL.eager, ORIGINAL.compiled, Capture((0,), (replace(SITE, skipped=True),), ("a loop",)))
    assert judged(given_up, arm(2, HELLO, WORLD, sites=1)).status == "proven"


def test_more_recompiles_are_a_difference() -> None:
    found = judged(arm(3, sites=1), arm(1, recompiles=("Recompiling forward\n  - size mismatch",)))
    assert failed(found) == ["recompiles"]
    assert "size mismatch" in found.reason


def test_a_capture_that_is_lost_is_a_difference() -> None:
    found = judged(arm(3, sites=1), arm(1, refusal="a logger"))
    assert failed(found) == ["fullgraph=True"]


def test_what_torch_compile_changes_anyway_is_a_note() -> None:
    found = judged(
        ORIGINAL,
        arm(1, HELLO, WORLD),
        original_compiled_to_eager=DIFFERENT,
        fixed_compiled_to_eager=DIFFERENT,
    )
    assert found.status == "proven"
    assert found.notes == ("torch.compile changes values of the original too: call 1, outputs: values differ",)
    only_fixed = judged(ORIGINAL, arm(1, HELLO, WORLD), fixed_compiled_to_eager=DIFFERENT)
    assert failed(only_fixed) == ["compiled against eager"]
