"""A right fix is proven, and the proof leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphmend_lint.verify import Options, TargetSpec, Verdict, verify
from graphmend_lint.verify.launcher import Launcher
from tests.verify.fixers import IMPORT, Replace, processes_that_write_below

DEFER = (
    ("    logger.warning(", "    deferred(logger).warning("),
    ("    print(", "    deferred(print)("),
    ("    warnings.warn(", "    deferred(warnings.warn)("),
    ("    sys.stderr.write(", "    deferred(sys.stderr.write)("),
)
KEYS = {
    "schema",
    "target",
    "status",
    "exit_code",
    "reason",
    "environment",
    "checks",
    "original",
    "fixed",
    "files",
    "predicates",
    "causes",
    "notes",
}


@pytest.fixture(scope="module")
def fixer() -> Replace:
    return Replace(IMPORT, *DEFER)


@pytest.fixture(scope="module")
def verdict(
    targets: Path, scratch: Path, fixer: Replace, snapshot: Callable[[Path], dict[str, str]], launcher: Launcher
) -> Iterator[Verdict]:
    before = snapshot(targets)
    target = TargetSpec.parse(f"{targets}/pack/model.py:build")
    yield verify(target, fixer, options=Options(grad=True, timeout=300, passes=3), launcher=launcher)
    assert snapshot(targets) == before, "the user's tree was changed"
    assert not list(scratch.iterdir()), "temporary files were left"


def test_a_faithful_fix_is_proven(verdict: Verdict) -> None:
    assert verdict.status == "proven", verdict.reason
    assert verdict.exit_code == 0
    assert [check.name for check in verdict.checks if not check.passed] == []


def test_only_what_the_calls_executed_is_fixed(verdict: Verdict, fixer: Replace, targets: Path) -> None:
    assert fixer.asked == [targets / "pack" / "helper.py", targets / "pack" / "model.py"]
    assert [Path(file.path) for file in verdict.files] == fixer.asked


def test_breaks_are_counted_for_each_input_set_and_named(verdict: Verdict) -> None:
    assert verdict.original is not None
    assert verdict.fixed is not None
    assert all(count > 0 for count in verdict.original.capture.breaks)
    assert verdict.fixed.capture.breaks == (0, 0, 0)
    sites = {(site.gb, Path(site.file).name, site.code) for site in verdict.original.capture.sites}
    assert ("GB0291", "helper.py", 'logger.warning("remark")') in sites
    assert ("GB0059", "helper.py", 'print("printed", "twice")') in sites
    assert verdict.fixed.capture.sites == ()
    assert verdict.fixed.capture.whole
    assert not verdict.original.capture.whole


def test_every_message_is_heard_in_order(verdict: Verdict) -> None:
    assert verdict.fixed is not None
    runs = verdict.fixed.eager.messages, verdict.fixed.compiled.messages
    for run in runs:
        assert len(run) == 6
        for call in run:
            heard = [(message.channel, message.text) for message in call]
            assert heard == [
                ("log", "remark"),
                ("stdout", "printed twice\n"),
                ("warning", "careful"),
                ("stderr", "written\n"),
            ]


def test_the_report_says_all_of_it(verdict: Verdict) -> None:
    report = json.loads(json.dumps(verdict.to_json()))
    assert report.keys() == KEYS
    assert report["original"]["breaks"] == sum(report["original"]["breaks_per_input_set"])
    assert report["fixed"]["fullgraph"] is True
    assert report["environment"]["backend"] == "eager"
    assert {check["name"] for check in report["checks"]} >= {
        "eager values",
        "compiled messages",
        "recompiles",
    }


def test_no_process_is_left(verdict: Verdict, scratch: Path) -> None:
    assert verdict.status == "proven"
    assert processes_that_write_below(scratch) == []


def test_times_and_memory_are_measured_in_both_arms(verdict: Verdict) -> None:
    for arm in (verdict.original, verdict.fixed):
        assert arm is not None
        assert arm.timing is not None
        assert arm.timing.cold > 0
        assert len(arm.timing.steady) == len(arm.timing.eager) == 3
        assert arm.timing.memory > 0
