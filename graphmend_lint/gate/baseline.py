"""The baseline: a committed JSON file with the findings that are known, one a line, without line numbers.

    {"path": "src/head.py", "scope": "Head.forward", "code": "GM201", "content": "5f0c", "count": 1, "text": "print(x)"}

`path` counts from the folder of the file. `text` is for people; the rest is what a finding is known by.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphmend_lint import registry
from graphmend_lint.analysis.source import reason

VERSION = 1
TOOL = "graphmend"


class BaselineError(Exception):
    """A baseline that cannot be used. The text is one line and names the file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that is known, `count` times in one function.

    `code` is a rule's, "" where the rule is gone; that of a measured break is PyTorch's number or type. `likely`: no
    entry into compiled code was known to reach the function.
    """

    path: str
    scope: str
    code: str
    content: str
    text: str
    count: int = 1
    likely: bool = False

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.path, self.scope, self.code, self.content)

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "path": self.path,
            "scope": self.scope,
            "code": self.code,
            "content": self.content,
            "count": self.count,
        }
        likely = {"likely": True} if self.likely else {}
        return {**record, **likely, "text": self.text}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known: `findings`, and the measured `breaks` by target. Entries are sorted, each key is there once."""

    findings: tuple[Entry, ...] = ()
    breaks: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)

    def to_text(self) -> str:
        parts = [f'  "tool": {json.dumps(TOOL)}', f'  "version": {VERSION}', f'  "findings": {_list(self.findings, 2)}']
        if self.breaks:
            targets = [f"    {_json(name)}: {_list(found, 4)}" for name, found in sorted(self.breaks.items())]
            parts.append('  "breaks": {\n' + ",\n".join(targets) + "\n  }")
        return "{\n" + ",\n".join(parts) + "\n}\n"


def _list(entries: Iterable[Entry], indent: int) -> str:
    lines = [f"{' ' * (indent + 2)}{_json(entry.to_json())}" for entry in entries]
    return "[\n" + ",\n".join(lines) + f"\n{' ' * indent}]" if lines else "[]"


def _json(value: Any) -> str:
    """JSON that people can read, whatever their language; names of files may hold bytes that are no text."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def collected(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries sorted, those with one key as one that has all their counts."""
    found: dict[tuple[str, str, str, str], Entry] = {}
    for entry in entries:
        known = found.get(entry.key)
        found[entry.key] = entry if known is None else _joined(known, entry, known.count + entry.count)
    return tuple(found[key] for key in sorted(found))


def _joined(one: Entry, two: Entry, count: int) -> Entry:
    return replace(one, count=count, likely=one.likely and two.likely)


# -- files -----------------------------------------------------------------------------------------------------------


def read(place: Path, shown: str) -> Baseline | None:
    """The baseline in a file that messages call `shown`, None where there is no such file.

    Raises:
        BaselineError: it cannot be read, or is something else.
    """
    try:
        content = place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineError(f"{shown}: {reason(error)}") from error
    return _parsed(content, shown)


def _parsed(content: bytes, shown: str) -> Baseline:
    if not content.strip():
        raise BaselineError(f"{shown}: empty, so no baseline; remove it, and --update-baseline writes a new one")
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = "it has conflict markers" if b"\n<<<<<<< " in b"\n" + content else f"not JSON ({error})"
        raise BaselineError(f"{shown}: not a baseline: {why}") from error
    if not isinstance(data, dict) or data.get("tool") != TOOL:
        raise BaselineError(f'{shown}: not a baseline of graphmend: it has no "tool": "{TOOL}"')
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise BaselineError(f"{shown}: not a baseline: its version is {json.dumps(version)}")
    if version > VERSION:
        raise BaselineError(f"{shown}: written by a newer graphmend (version {version}; this one reads {VERSION})")
    breaks = data.get("breaks", {})
    if not isinstance(breaks, dict):
        raise BaselineError(f"{shown}: not a baseline: `breaks` is no object")
    return Baseline(
        _entries(data.get("findings"), shown, "findings", of_rules=True),
        {name: _entries(found, shown, f"breaks of {name}", of_rules=False) for name, found in breaks.items()},
    )


def _entries(records: Any, shown: str, what: str, *, of_rules: bool) -> tuple[Entry, ...]:
    if not isinstance(records, list):
        raise BaselineError(f"{shown}: not a baseline: `{what}` is no list")
    found: dict[tuple[str, str, str, str], Entry] = {}
    for number, record in enumerate(records, 1):
        entry = _entry(record, f"{shown}: {what}, entry {number}", of_rules=of_rules)
        known = found.get(entry.key)
        # Two lines for one thing are what a merge leaves: they are no leave to have it twice.
        found[entry.key] = entry if known is None else _joined(known, entry, max(known.count, entry.count))
    return tuple(found[key] for key in sorted(found))


def _entry(record: Any, where: str, *, of_rules: bool) -> Entry:
    if not isinstance(record, dict):
        raise BaselineError(f"{where}: no object")
    texts: dict[str, Any] = {name: record.get(name) for name in ("path", "scope", "code", "content", "text")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise BaselineError(f"{where}: `{name}` is no string")
    count, likely = record.get("count"), record.get("likely", False)
    if type(count) is not int or count < 1:
        raise BaselineError(f"{where}: `count` is no number of findings")
    if not isinstance(likely, bool):
        raise BaselineError(f"{where}: `likely` is neither true nor false")
    if of_rules:
        try:
            texts["code"] = registry.current_code(texts["code"]) or ""
        except registry.UnknownRule as error:
            raise BaselineError(f"{where}: {error}") from error
    return Entry(**texts, count=count, likely=likely)


def write(place: Path, baseline: Baseline, shown: str) -> None:
    """Write the file whole or not at all; an old one keeps its permissions, and its line ends where it says the same.

    Raises:
        BaselineError: it cannot be written.
    """
    target, content = Path(os.path.realpath(place)), baseline.to_text().encode()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and target.read_bytes().replace(b"\r\n", b"\n") == content:
            return
        try:
            with temporary.open("xb") as stream:
                stream.write(content)
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(target.stat().st_mode & 0o7777)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BaselineError(f"{shown}: not written: {reason(error)}") from error


# -- names of files --------------------------------------------------------------------------------------------------


def name_of(path: Path, folder: Path) -> str:
    """A file as seen from a folder, with forward slashes: a link by its own name, its folder by where it leads.

    Raises:
        BaselineError: no relative path leads there (another drive).
    """
    place = Path(os.path.realpath(path.parent), path.name)
    try:
        return Path(os.path.relpath(place, os.path.realpath(folder))).as_posix()
    except ValueError as error:
        raise BaselineError(f"{path}: not on the drive of the baseline") from error


def file_of(name: str, folder: Path) -> Path:
    """The file that `name_of` gave this name."""
    return Path(os.path.normpath(Path(os.path.realpath(folder), name)))
