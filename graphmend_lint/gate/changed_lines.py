"""Which lines have changed since a revision, as git sees it: commits, the index and the working tree together.

What git cannot compare (files that it ignores, submodules, files outside of the repository) counts as changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphmend_lint.findings import Span

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
#: They would change what git prints, or what it takes a path for.
_NOT_INHERITED = frozenset(
    {
        "GIT_DIFF_OPTS",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
    }
)
_PYTHON = (":(top,glob)**/*.py", ":(top,glob)**/*.pyi")


class GitError(Exception):
    """Git cannot say what has changed. The text is one line."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed in a file: ranges of lines (first, last), and lines that something was removed behind."""

    added: tuple[tuple[int, int], ...] = ()
    removed_behind: tuple[int, ...] = ()

    def touch(self, span: Span) -> bool:
        """Whether a line of the span is new or different, or one is gone from between its lines."""
        return any(first <= span.end_line and span.line <= last for first, last in self.added) or any(
            span.line <= line < span.end_line for line in self.removed_behind
        )


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """The changes by file, those of the files that git compares."""

    top: Path
    compared: frozenset[str]
    changes: dict[str, Changes] = field(default_factory=dict)

    def touch(self, path: Path, span: Span) -> bool:
        """Whether one of these lines of a file has changed."""
        name = _name_below(path, self.top)
        if name is None or name not in self.compared:
            return True
        return name in self.changes and self.changes[name].touch(span)


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository, and the commit in it that changes count from."""

    top: Path
    base: str

    @classmethod
    def since(cls, revision: str, folder: Path) -> Repository:
        """The repository around a folder. Changes count from where the current commit has left `revision`.

        Raises:
            GitError: there is no git, no repository, no such revision, or nothing that both have in common.
        """
        top = Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))
        try:
            commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        except GitError:
            raise GitError(f"no revision `{revision}` in {top}") from None
        try:
            base = _git(top, "merge-base", commit.decode().strip(), "HEAD")
        except GitError as error:
            why = str(error) or "in a shallow clone, fetch more of the history"
            raise GitError(f"`{revision}` and HEAD have no commit in common ({why})") from None
        return cls(top, base.decode().strip())

    def changed_lines(self, files: Iterable[Path]) -> ChangedLines:
        """What has changed in Python files and in these."""
        names = {name for path in files if (name := _name_below(path, self.top)) is not None}
        others = [f":(top,literal){name}" for name in sorted(names) if not name.endswith((".py", ".pyi"))]
        wanted = [*_PYTHON, *others]
        with tempfile.TemporaryDirectory(prefix="graphmend-git-") as folder:
            environment = self._with_untracked(Path(folder), wanted)
            compared = _names(_git(self.top, "ls-files", "-z", "--", *wanted, environment=environment))
            patch = _git(
                self.top,
                *("-c", "core.quotePath=false", "-c", "diff.renameLimit=0"),
                *("diff", "--unified=0", "--find-renames", "--ignore-cr-at-eol", "--ignore-submodules"),
                *("--no-color", "--no-ext-diff", "--no-textconv", "--no-relative", "--inter-hunk-context=0"),
                *("--src-prefix=a/", "--dst-prefix=b/", self.base, "--", *wanted),
                environment=environment,
            )
        return ChangedLines(self.top, frozenset(compared), dict(_changes_of(patch)))

    def _with_untracked(self, folder: Path, wanted: Sequence[str]) -> dict[str, str]:
        """An environment with a copy of the index, to which untracked files are announced.

        So a file that was moved by hand is a rename too. The repository itself is only read.
        """
        untracked = _names(_git(self.top, "ls-files", "-z", "--others", "--exclude-standard", "--", *wanted))
        index, objects = (self.top / self._git_path(name) for name in ("index", "objects"))
        if not untracked or not index.is_file():
            return {}
        shutil.copyfile(index, folder / "index")
        (folder / "objects").mkdir()
        environment = {
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        _git(
            self.top,
            *("-c", f"core.hooksPath={folder}", "--literal-pathspecs", "add", "--intent-to-add"),
            *("--pathspec-from-file=-", "--pathspec-file-nul"),
            environment=environment,
            stdin=b"\0".join(os.fsencode(name) for name in untracked),
        )
        return environment

    def _git_path(self, name: str) -> str:
        return os.fsdecode(_git(self.top, "rev-parse", "--git-path", name).rstrip(b"\n"))


def _name_below(path: Path, top: Path) -> str | None:
    """A file as git calls it, None if it is not below `top`; a link goes by its own name."""
    try:
        return Path(os.path.realpath(path.parent), path.name).relative_to(os.path.realpath(top)).as_posix()
    except ValueError:
        return None


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _git(folder: Path, *args: str, environment: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
    """What git prints; GitError with the first line of its complaint."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    own = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **(environment or {})}
    try:
        done = subprocess.run(["git", *args], cwd=folder, env=inherited | own, input=stdin, capture_output=True)
    except FileNotFoundError:
        raise GitError("there is no program `git`") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitError(lines[0].removeprefix("fatal: ") if lines else "")
    return done.stdout


def _changes_of(patch: bytes) -> Iterator[tuple[str, Changes]]:
    """The changes of each file in a patch without context. Lines of a hunk are counted, so that they mislead nobody."""
    name, added, removed = "", list[tuple[int, int]](), list[int]()
    lines = iter(patch.split(b"\n"))
    for line in lines:
        if line.startswith(b"diff --git "):
            if name:
                yield name, Changes(tuple(added), tuple(removed))
            name, added, removed = "", [], []
        elif line.startswith(b"+++ "):
            name = _unquoted(line[4:])
        elif hunk := _HUNK.match(line):
            before, start, after = (1 if part is None else int(part) for part in hunk.groups())
            if after:
                added.append((start, start + after - 1))
            else:
                removed.append(start)
            left = before + after
            while left:
                left -= not next(lines, b"").startswith(b"\\")  # "\ No newline at end of file"
    if name:
        yield name, Changes(tuple(added), tuple(removed))


def _unquoted(shown: bytes) -> str:
    """The name of a file in a patch: `b/name`, with a tab behind a name that has spaces, or in quotes."""
    shown = shown.removesuffix(b"\t")
    if shown.startswith(b'"'):
        shown = _ESCAPE.sub(_character, shown[1:-1])
    return "" if shown == b"/dev/null" else os.fsdecode(shown.removeprefix(b"b/"))


def _character(escape: re.Match[bytes]) -> bytes:
    code = escape.group(1)
    return bytes([int(code, 8)]) if len(code) == 3 else _LETTERS.get(code, code)
