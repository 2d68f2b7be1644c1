"""The documentation: what it repeats from the code is current, and what it links to is there."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend_lint import registry
from graphmend_lint.config import KEYS, TARGET_KEYS, parse_settings
from graphmend_lint.report.formats import FORMATS
from tests.cli.project import ROOT, Project, compiled

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

DOCS = ROOT / "docs"
PAGES = sorted({*DOCS.rglob("*.md"), ROOT / "README.md"})
CONFIGURATION = (DOCS / "configuration.md").read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> Iterator[str]:
    """The code blocks of a page in a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    yield from found


def test_generated_pages_are_current() -> None:
    pages = runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"))["pages"]()
    stale = [path.name for path, content in pages.items() if path.read_text(encoding="utf-8") != content]
    assert not stale, "run scripts/generate_docs.py"


def test_no_page_of_a_rule_is_left_over() -> None:
    pages = {path.name for path in (DOCS / "rules").glob("GM*.md")}
    assert pages == {f"{card.code}-{card.name}.md" for card in registry.described()}


@pytest.mark.parametrize("card", registry.described(), ids=lambda card: card.code)
def test_a_page_is_what_the_command_prints(project: Project, card: registry.RuleCard) -> None:
    page = (DOCS / "rules" / f"{card.code}-{card.name}.md").read_text(encoding="utf-8")
    for name in (card.code, card.name):
        outcome = project.run("rule", name)
        assert (outcome.code, outcome.out.rstrip("\n")) == (0, page.rstrip("\n"))
    for number in card.breaks:
        assert registry.break_page(number) in page


def test_every_key_is_explained() -> None:
    for key in KEYS:
        assert f"| `{key.name}` | {key.type} | `{key.default}` | {key.doc} |" in CONFIGURATION
    for name in TARGET_KEYS:
        assert f"| `{name}` |" in CONFIGURATION
    for name in FORMATS:
        assert f"| `{name}` |" in CONFIGURATION


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [t for t in targets if t and "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_settings_are_accepted(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        tables = tomllib.loads(block).get("tool", {})
        if "graphmend" in tables:
            parse_settings(tables["graphmend"], tmp_path / "pyproject.toml")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_exist(project: Project, page: Path) -> None:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[:1] == ["graphmend"]:
            outcome = project.run(words[1], "--help")
            assert outcome.code == 0, line
            for word in words[2:]:
                if word.startswith("-") and word != "-":
                    assert word.partition("=")[0] in outcome.out, line


def test_the_silenced_example_is_silent(project: Project) -> None:
    (example,) = blocks(DOCS / "configuration.md", "python")
    project.write("model.py", compiled(*example.splitlines()))
    assert project.findings("--report-unused-suppressions") == []
    project.write("model.py", project.read("model.py").replace("#", "# was "))
    assert [finding["code"] for finding in project.findings()] == ["GM201", "GM202", "GM201", "GM101"]
