"""Fixit's door: the findings and the fixes of `graphmend`, whatever rules Fixit was told to run."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fixit.rule
import libcst as cst
import pytest
from fixit.api import fixit_bytes
from fixit.engine import LintRunner
from fixit.ftypes import Config, QualifiedRule, Result
from fixit.util import capture

from graphmend_lint import config, engine, fixing, registry, rule

SOURCE = b"""\
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        print("shape", x.shape)
        if mask is not None:
            warnings.warn("`mask` is old", FutureWarning)
        if torch.isnan(x).any():
            logger.warning("nan")
            print(x)
        logger.info(f"mean {x.mean()}")
        logger.info("item %s", x.sum().item() * 2)
        print("quiet")  # lint-ignore: GM201
        logger.info("quiet")  # lint-ignore[GM202]
        return x
"""
CODES = tuple(card.code for card in registry.all_rules())


def run(source: bytes, path: Path, rules: Sequence[str] = ("graphmend",)) -> tuple[list[Result], bytes]:
    """The results and the fixed source that Fixit gives."""
    enabled = [_qualified(name) for name in rules]
    settings = Config(path=path, root=path.parent, enable=enabled, disable=[QualifiedRule("fixit.rules")])
    captured = capture(fixit_bytes(path, source, config=settings, autofix=True))
    results = list(captured)
    for result in results:
        assert result.error is None, result.error
    return results, captured.result or source


def _qualified(rule_name: str) -> QualifiedRule:
    module, _, name = rule_name.partition(":")
    return QualifiedRule(module, name or None)


def places(results: Sequence[Result]) -> list[tuple[int, int, str]]:
    found = [result.violation for result in results if result.violation is not None]
    return sorted((v.range.start.line, v.range.start.column, v.rule_name) for v in found)


def ours(source: bytes, path: Path, codes: Sequence[str] = CODES) -> tuple[list[tuple[int, int, str]], bytes]:
    settings = replace(config.load_settings(path), select=tuple(codes))
    found = engine.lint_source(source, path, settings=settings)
    fixed = fixing.fix_source(source, path, settings=settings).source
    return sorted((f.span.line, f.span.column, f.code) for f in found), fixed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    return tmp_path / "model.py"


def test_same_findings_and_fixes(path: Path) -> None:
    results, fixed = run(SOURCE, path)
    assert (places(results), fixed) == ours(SOURCE, path)
    assert len(results) == 6
    assert fixed.count(b"deferred(") == 3
    assert run(fixed, path)[1] == fixed


@pytest.mark.parametrize(
    "classes",
    [c for n in (1, 2) for c in itertools.combinations(("PrintCall", "LoggerCall", "WarningsWarn"), n)],
)
def test_only_the_fixes_of_rules_that_run(path: Path, classes: tuple[str, ...]) -> None:
    results, fixed = run(SOURCE, path, [f"graphmend.{_stem(name)}:{name}" for name in classes])
    codes = [card.code for card in registry.all_rules() if card.class_name in classes]
    assert (places(results), fixed) == ours(SOURCE, path, codes)


def _stem(class_name: str) -> str:
    return registry.kebab_case(class_name).replace("-", "_")


def test_one_finding_carries_all_fixes(path: Path) -> None:
    results, _ = run(SOURCE, path)
    carriers = [r.violation for r in results if r.violation and r.violation.replacement is not None]
    assert [(v.range.start.line, v.rule_name) for v in carriers] == [(12, "GM201")]
    assert all(
        isinstance(r.violation.node, cst.Call)
        for r in results
        if r.violation is not None and r.violation is not carriers[0]
    )


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_any_order_of_the_rules(path: Path, order: tuple[int, ...]) -> None:
    cards = registry.select(("GM2",))
    rules = [registry.load(cards[index])() for index in order]
    runner = LintRunner(path, SOURCE)
    found = list(runner.collect_violations(rules, Config(path=path, root=path.parent)))
    assert runner.apply_replacements(found).bytes == ours(SOURCE, path)[1]


def test_statement_is_the_anchor_where_no_import_is_added(path: Path) -> None:
    source = SOURCE.replace(
        b"from torch import nn\n",
        b"from graphmend_lint.runtime import deferred, formatted, when\nfrom torch import nn\n",
    )
    results, fixed = run(source, path)
    assert fixed == ours(source, path)[1]
    (carrier,) = [r.violation for r in results if r.violation and r.violation.replacement is not None]
    assert isinstance(carrier.node, cst.ClassDef)


def test_configuration_applies(path: Path) -> None:
    (path.parent / "pyproject.toml").write_text(
        '[tool.graphmend]\nruntime-module = "mine.runtime"\nselect = ["GM203"]\n'
        '[tool.graphmend.per-file-ignores]\n"model.py" = ["GM202"]\n'
    )
    results, fixed = run(SOURCE, path)
    assert b"from mine.runtime import deferred" in fixed
    assert {code for _, _, code in places(results)} == {"GM101", "GM201", "GM203"}


def test_a_clean_file_costs_no_positions_and_no_parents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[str] = []
    original = cst.metadata.MetadataWrapper.resolve_many

    def note(self: Any, providers: Any) -> Any:
        resolved.extend(provider.__name__ for provider in providers)
        return original(self, providers)

    monkeypatch.setattr(cst.metadata.MetadataWrapper, "resolve_many", note)
    assert run(b"import torch\n", path)[1] == b"import torch\n"
    assert set(resolved) == {"FactsProvider"}


def test_findings_are_computed_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bytes] = []
    original = engine.lint_source

    def count(source: bytes, *args: Any, **kwargs: Any) -> Any:
        calls.append(source)
        return original(source, *args, **kwargs)

    monkeypatch.setattr(engine, "lint_source", count)
    run(b"import torch\n\n\ndef f(x: torch.Tensor):\n    return x\n", path)
    assert len(calls) == 1


def test_a_failing_fix_does_not_cost_the_findings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(fixing, "fix_source", fail)
    results, fixed = run(SOURCE, path)
    assert fixed == SOURCE
    assert places(results) == ours_places(path)
    messages = [r.violation.message for r in results if r.violation is not None]
    assert sum("(not fixed: ValueError: broken)" in message for message in messages) == 5


def ours_places(path: Path) -> list[tuple[int, int, str]]:
    found = engine.lint_source(SOURCE, path, settings=config.Settings())
    return sorted((f.span.line, f.span.column, f.code) for f in found)


def test_a_file_that_libcst_prints_otherwise_gets_no_fix(path: Path) -> None:
    source = SOURCE + b"\n\ntry:\n    pass\nexcept OSError :\n    pass\n"
    path.write_bytes(source)
    results, fixed = run(source, path)
    assert b"deferred" not in fixed
    assert any("would not print as it is" in r.violation.message for r in results if r.violation is not None)


def test_base_class_still_replaces_what_fixit_has() -> None:
    """The methods that the base class overrides must exist in Fixit, or its lean ways are void."""
    for name in ("get_inherited_dependencies", "get_visitors"):
        assert hasattr(fixit.rule.LintRule, name)
        assert name in vars(rule.GraphRule)
    assert list(rule.GraphRule().get_visitors()) == ["visit_Module", "leave_Module"]


# --- the command


def fixit_command(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    found = os.pathsep.join([str(root), str(root / "rules"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "fixit", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": found},
        check=False,
    )


def test_lint_and_fix_from_the_command_line(path: Path) -> None:
    path.write_bytes(SOURCE)
    shown = fixit_command("--rules", "graphmend", "lint", "model.py", cwd=path.parent)
    assert shown.returncode == 1
    assert "model.py@12:8 GM201: `print(...)` ends the graph" in shown.stdout
    assert shown.stdout.count(" GM20") == 6
    fixit_command("--rules", "graphmend:PrintCall", "fix", "--automatic", "model.py", cwd=path.parent)
    assert path.read_bytes() == ours(SOURCE, path, ["GM201"])[1]
    fixit_command("--rules", "graphmend", "fix", "--automatic", "model.py", cwd=path.parent)
    assert path.read_bytes() == ours(ours(SOURCE, path, ["GM201"])[1], path)[1]


def test_fixit_test(tmp_path: Path) -> None:
    shown = fixit_command("test", "graphmend", cwd=tmp_path)
    assert shown.returncode == 0
    cases = sum(len(card.valid) + len(card.invalid) for card in registry.all_rules())
    assert f"Ran {cases} tests" in shown.stderr


def test_comments_that_silence_nothing_are_left_to_the_command_line(path: Path) -> None:
    (path.parent / "pyproject.toml").write_text("[tool.graphmend]\nreport-unused-suppressions = true\n")
    config._settings_of_folder.cache_clear()
    source = b"import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):  # noqa: GM202\n    print(x)\n    return x\n"
    results, fixed = run(source, path)
    assert [code for _, _, code in places(results)] == ["GM201"]
    assert b"def f(x: torch.Tensor):  # noqa: GM202\n    deferred(print)(x)\n" in fixed
