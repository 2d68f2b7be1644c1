"""Configuration: `[tool.graphmend]` of the nearest pyproject.toml, checked key by key."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pathspec

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

#: Folders that never hold the project's own source.
DEFAULT_EXCLUDE = (
    ".*/",
    "__pycache__/",
    "build/",
    "dist/",
    "node_modules/",
    "site-packages/",
    "venv/",
    "*.egg-info/",
)


class ConfigError(Exception):
    """A configuration that cannot be used. The text is one line that names the file and the key."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides how a file is linted. Defaults are those of a project without configuration.

    `root` is the folder of the pyproject.toml that was read (patterns are relative to it), None where there is none.
    """

    root: Path | None = None
    source: Path | None = None
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    target_torch: str = "2.11"
    runtime_module: str = "graphmend_lint.runtime"
    entries: tuple[str, ...] = ()
    confidence: str = "likely"
    defer_style: str = "runtime"
    trap_style: str = "exact"
    baseline: str = "graphmend-baseline.json"
    report_unused_suppressions: bool = False
    verify: tuple[dict[str, Any], ...] = field(default=(), hash=False)

    @property
    def where(self) -> str:
        """How a message about these settings begins."""
        return f"{self.source}: [tool.graphmend] " if self.source else ""

    @property
    def carries_effects(self) -> bool:
        """Whether the oldest torch to support has effectful operators (2.11 is the oldest known to work)."""
        return tuple(int(part) for part in self.target_torch.split(".")[:2]) >= (2, 11)

    def excludes(self, path: Path) -> bool:
        """Whether the `exclude` patterns (gitignore syntax) drop a file found in a folder."""
        relative = _relative(path, self.root)
        return relative is not None and _matcher(self.exclude).match_file(relative)

    def ignored_codes(self, path: Path) -> tuple[str, ...]:
        """Rules that are off in one file, by `ignore` and `per-file-ignores`."""
        relative = _relative(path, self.root)
        found = list(self.ignore)
        for pattern, codes in self.per_file_ignores:
            if relative is not None and _matcher((pattern,)).match_file(relative):
                found.extend(codes)
        return tuple(found)


@lru_cache(maxsize=256)
def _matcher(patterns: tuple[str, ...]) -> pathspec.PathSpec[Any]:
    return pathspec.PathSpec.from_lines("gitignore", patterns)


def _relative(path: Path, root: Path | None) -> str | None:
    """The path below `root` by which patterns know a file. A link goes by its own name, wherever it leads."""
    if root is None:
        return path.name
    try:
        place = Path(os.path.realpath(path.parent), path.name)
        return place.relative_to(os.path.realpath(root)).as_posix()
    except ValueError:
        return None


_Check = Callable[[Any], Any]


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise TypeError("a list of strings")
    return tuple(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _one_of(*choices: str) -> _Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise TypeError("one of " + ", ".join(f'"{c}"' for c in choices))
        return str(value)

    return check


def _matching(pattern: str, wanted: str) -> _Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise TypeError(wanted)
        return value

    return check


def _ignores(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise TypeError("a table of patterns and lists of rules")
    try:
        return tuple((pattern, _strings(codes)) for pattern, codes in value.items())
    except TypeError:
        raise TypeError("a table of patterns and lists of rules") from None


def _targets(value: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise TypeError("an array of tables: [[tool.graphmend.verify]]")
    for table in value:
        if not isinstance(table.get("target"), str):
            raise TypeError('tables with a `target` ("module:callable")')
        for name, given in table.items():
            _check_target_key(name, given)
    return tuple(value)


def _check_target_key(name: str, value: Any) -> None:
    wanted = TARGET_KEYS.get(name)
    if wanted is None:
        near = difflib.get_close_matches(name, TARGET_KEYS, 1)
        hint = f', did you mean "{near[0]}"?' if near else ""
        raise TypeError(f'tables with the keys of a target; "{name}" is none{hint}')
    fits, words = wanted
    if not fits(value):
        raise TypeError(f"tables where `{name}` is {words}")


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_integer(value)


_TEXT = (lambda value: isinstance(value, str), "a string")
_SWITCH = (lambda value: isinstance(value, bool), "true or false")
_NUMBER = (lambda value: _is_number(value) and value >= 0, "a number")

#: The keys of a `[[tool.graphmend.verify]]` table: what fits, and that in words.
TARGET_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "target": _TEXT,
    "name": _TEXT,
    "fix-path": (_is_list_of_strings, "a list of paths"),
    "unsafe-fixes": _SWITCH,
    "backend": _TEXT,
    "mode": _TEXT,
    "dynamic": _SWITCH,
    "device": _TEXT,
    "dtype": _TEXT,
    "calls": (lambda value: _is_integer(value) and value > 0, "a number of calls"),
    "passes": (lambda value: _is_integer(value) and value >= 0, "a number of passes"),
    "train": _SWITCH,
    "grad": _SWITCH,
    "tolerance": _NUMBER,
    "timeout": _NUMBER,
    "seed": (_is_integer, "an integer"),
    "require-both-sides": _SWITCH,
    "max-breaks": (lambda value: _is_integer(value) and value >= 0, "a number of breaks"),
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of `[tool.graphmend]`, for checking and for the docs."""

    name: str
    check: _Check
    type: str
    default: str
    doc: str

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


KEYS = (
    Key("select", _strings, "list of codes, prefixes or names", '["ALL"]', "Rules to run."),
    Key("ignore", _strings, "list of codes, prefixes or names", "[]", "Rules to leave out."),
    Key("per-file-ignores", _ignores, "table", "{}", "Rules to leave out by file pattern."),
    Key("exclude", _strings, "list of patterns", "[]", "Files and folders to skip, in gitignore syntax."),
    Key(
        "unsafe-fixes",
        _boolean,
        "true or false",
        "false",
        "Also apply fixes that rest on something not proven.",
    ),
    Key(
        "target-torch",
        _matching(r"\d+\.\d+(\.\d+)?", 'a version such as "2.11"'),
        "version",
        '"2.11"',
        "The oldest torch that the code has to run on.",
    ),
    Key(
        "runtime-module",
        _matching(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", 'a dotted module name such as "mypackage.graphmend_runtime"'),
        "module name",
        '"graphmend_lint.runtime"',
        "What fixed code imports; see `graphmend vendor`.",
    ),
    Key(
        "entries",
        _strings,
        "list of names",
        "[]",
        'Functions that are compiled elsewhere, as "package.module:function" or "package.module:Class.method".',
    ),
    Key(
        "confidence",
        _one_of("definite", "likely"),
        '"definite" or "likely"',
        '"likely"',
        "The lowest confidence to report.",
    ),
    Key(
        "defer-style",
        _one_of("runtime", "guard"),
        '"runtime" or "guard"',
        '"runtime"',
        "How messages leave the region; `guard` is unsafe: compiled code no longer says them.",
    ),
    Key(
        "trap-style",
        _one_of("exact", "async"),
        '"exact" or "async"',
        '"exact"',
        "How guards raise: `exact` is the original exception; `async` is `torch._assert_async`, a RuntimeError.",
    ),
    Key(
        "baseline",
        _matching(r".+", "the path of a file"),
        "path",
        '"graphmend-baseline.json"',
        "Where `graphmend check` keeps the findings that are known, seen from the folder of this file.",
    ),
    Key(
        "report-unused-suppressions",
        _boolean,
        "true or false",
        "false",
        "Report comments that silence rules where these have nothing to say (GM001).",
    ),
    Key("verify", _targets, "array of tables", "[]", "Targets of `graphmend verify`."),
)
_BY_NAME = {key.name: key for key in KEYS}


def parse_settings(table: dict[str, Any], source: Path) -> Settings:
    """Settings from the table `[tool.graphmend]` of `source`.

    Raises:
        ConfigError: an unknown key or a wrong type.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        key = _BY_NAME.get(name)
        if key is None:
            near = difflib.get_close_matches(name, _BY_NAME, 1)
            hint = f', did you mean "{near[0]}"?' if near else ""
            raise ConfigError(f'{source}: [tool.graphmend] has no key "{name}"{hint}')
        try:
            found[key.attribute] = key.check(value)
        except TypeError as error:
            raise ConfigError(f"{source}: [tool.graphmend] {name} must be {error}") from None
    return replace(Settings(root=source.parent, source=source), **found)


def read_pyproject(path: Path) -> dict[str, Any] | None:
    """The table `[tool.graphmend]` of a pyproject.toml, None if it has none.

    Raises:
        ConfigError: the file is not TOML, or not readable.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from error
    tool = data.get("tool", {})
    if not isinstance(tool, dict) or "graphmend" not in tool:
        return None
    table = tool["graphmend"]
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.graphmend] must be a table")
    return table


@lru_cache(maxsize=1024)
def _settings_of_folder(folder: Path) -> Settings:
    candidate = folder / "pyproject.toml"
    if candidate.is_file():
        table = read_pyproject(candidate)
        if table is not None:
            return parse_settings(table, candidate)
    return _settings_of_folder(folder.parent) if folder.parent != folder else Settings()


def load_settings(path: Path) -> Settings:
    """The settings for a file or folder: those of the nearest pyproject.toml that has `[tool.graphmend]`.

    Raises:
        ConfigError: that file cannot be used.
    """
    path = path.absolute()
    return _settings_of_folder(path if path.is_dir() else path.parent)


def load_file(path: Path) -> Settings:
    """The settings of one given file (`--config`).

    Raises:
        ConfigError: it cannot be used, or has no `[tool.graphmend]`.
    """
    table = read_pyproject(path)
    if table is None:
        raise ConfigError(f"{path}: no [tool.graphmend] table")
    return parse_settings(table, path.absolute())
