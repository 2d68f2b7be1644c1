"""Fixtures: programs that are linted, fixed and run, before and after.

`fixtures/<group>/<case>/before.py` is linted; where it gets a fix, `after.py` is what `graphmend fix` makes of it. A
case of several files has folders `before/` and `after/` in their place, and its program is `main.py`. A program defines
`build()`, which gives a callable and a list of argument tuples that take both sides of each branch.

Comments say what is expected. On the line of a finding:

    print(x)  # GM201: safe
    print(*xs)  # GM201: none star-arguments
    helper_print(x)  # GM201: likely safe

and at the top of the program:

    # breaks: 2 -> 0        places where Dynamo ends the graph, over all inputs, before and after (one number: no fix)
    # twin: other_case      the case that differs in one feature and gets the opposite answer
    # compile: dynamic      options of the compiled runs: `dynamic`, `inductor` (run with that backend as well), `reset`
                            (compile anew for each input)
    # fixes: unsafe         unsafe fixes are asked for
    # differs: result       what an unsafe fix changes: a field of `fixtures_executed.Seen`

This module needs no torch; `tests.fixtures_executed` runs what it reads.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from graphmend_lint import engine
from graphmend_lint.config import Settings
from graphmend_lint.findings import Finding

FIXTURES = Path(__file__).parent.parent / "fixtures"
#: The rules that the cases of each group are about; a program may show what other rules find as well.
GROUPS = {
    "defer": Settings(select=("GM2",)),
    "trap": Settings(select=("GM3",)),
    "where": Settings(select=("GM1",)),
}

_EXPECTATION = re.compile(r"(GM\d{3}): ((?:likely )?(?:safe|unsafe|none [a-z-]+))")
_HEADER = re.compile(r"^# (breaks|twin|compile|fixes|differs): (.*)$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Expected:
    """One finding, as a comment or the linter gives it."""

    file: str
    line: int
    code: str
    verdict: str


@dataclass(frozen=True)
class Fixture:
    """One folder of a group."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def group(self) -> str:
        return self.folder.parent.name

    @property
    def id(self) -> str:
        """The name, unique over all groups."""
        return self.name if self.group == "defer" else f"{self.group}-{self.name}"

    @property
    def settings(self) -> Settings:
        return replace(GROUPS[self.group], unsafe_fixes=self.header.get("fixes") == "unsafe")

    @property
    def main(self) -> str:
        """The file that defines `build()`."""
        return "main.py" if (self.folder / "before").is_dir() else "before.py"

    @cached_property
    def before(self) -> dict[str, str]:
        """The program's files by relative path. A program of one file is called `before.py` on both sides."""
        return self._side("before")

    @cached_property
    def after(self) -> dict[str, str]:
        """What fixing makes of the program; its own text where there is nothing to fix."""
        return {**self.before, **self._side("after")}

    def _side(self, side: str) -> dict[str, str]:
        root = self.folder / side
        if root.is_dir():
            return {p.relative_to(root).as_posix(): _text(p) for p in sorted(root.rglob("*.py"))}
        single = self.folder / f"{side}.py"
        return {"before.py": _text(single)} if single.exists() else {}

    def write_after(self, files: dict[str, str]) -> None:
        """Replace what the fixture holds as fixed: the files that differ."""
        for name, text in files.items():
            single = self.main == "before.py"
            target = self.folder / "after.py" if single else self.folder / "after" / name
            if text != self.before[name]:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text.encode())
            elif target.exists():
                target.unlink()

    @cached_property
    def header(self) -> dict[str, str]:
        return dict(_HEADER.findall(self.before[self.main]))

    @property
    def twins(self) -> list[str]:
        return [part.split()[0] for part in self.header.get("twin", "").split(",") if part.strip()]

    @property
    def options(self) -> set[str]:
        return set(self.header.get("compile", "").split())

    @property
    def breaks(self) -> tuple[int, int]:
        """How many places end the graph, before and after."""
        first, _, second = self.header["breaks"].partition("->")
        return int(first), int(second or first)

    def expected(self) -> list[Expected]:
        """The findings that the comments ask for."""
        return sorted(e for name, text in self.before.items() for e in _expectations(name, text))

    def left(self) -> list[Expected]:
        """The findings that the comments ask for once everything is fixed."""
        found = (e for name, text in self.after.items() for e in _expectations(name, text))
        applied = (
            ("safe", "likely safe", "unsafe", "likely unsafe")
            if self.settings.unsafe_fixes
            else ("safe", "likely safe")
        )
        return sorted(e for e in found if e.verdict not in applied)


def fixtures() -> list[Fixture]:
    """Every case."""
    folders = [p for group in GROUPS for p in sorted((FIXTURES / group).iterdir())]
    return [Fixture(p) for p in folders if p.is_dir() and not p.name.startswith("_")]


def _text(path: Path) -> str:
    return path.read_bytes().decode()


def comments(text: str) -> list[tuple[int, str]]:
    """The comments of a file with their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def _expectations(name: str, text: str) -> Iterable[Expected]:
    for line, comment in comments(text):
        for code, verdict in _EXPECTATION.findall(comment):
            yield Expected(name, line, code, verdict)


# -- running the linter ----------------------------------------------------------------------------------------------


def write(files: dict[str, str], folder: Path) -> list[Path]:
    """Make a project of `files`, on its own whatever lies around `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("")
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        paths.append(path)
    return paths


def lint(files: dict[str, str], folder: Path, settings: Settings) -> list[Expected]:
    """The findings in a project of `files`."""
    report = engine.lint_paths(write(files, folder), settings_of=lambda _: settings, jobs=1)
    assert not report.errors
    return sorted(_as_expected(finding, folder) for finding in report.findings)


def _as_expected(finding: Finding, folder: Path) -> Expected:
    likely = "likely " if finding.confidence == "likely" else ""
    reason = f" {finding.decline.reason}" if finding.decline else ""
    name = Path(finding.path).relative_to(folder).as_posix()
    return Expected(name, finding.span.line, finding.code, f"{likely}{finding.fix}{reason}")


def fix(files: dict[str, str], folder: Path, settings: Settings) -> dict[str, str]:
    """What the safe fixes make of `files`; no fix may have gone wrong."""
    fixed = dict(files)
    for path, outcome in engine.fix_paths(write(files, folder), lambda _: settings, jobs=1):
        assert not isinstance(outcome, str), outcome
        assert not outcome.problems, outcome.problems
        fixed[path.relative_to(folder).as_posix()] = outcome.source.decode()
    return fixed
