"""The import line of a fix: names that collide with nothing, in the place where an import sorter wants
them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence

import libcst as cst

from graphmend_lint.rewrite import layout
from graphmend_lint.rewrite.home import Home
from graphmend_lint.rewrite.names import TORCH

_FUTURE, _STDLIB, _THIRD_PARTY, _FIRST_PARTY, _LOCAL = range(5)
_MAX_LINE = 88
_BLANK = cst.EmptyLine(indent=False)


def add(module: cst.Module, names: Mapping[str, str], runtime: str, home: Home) -> cst.Module:
    """The module with `from runtime import ...` for `names` (name to local name)."""
    if TORCH in names:
        module = _insert(module, "import torch", TORCH, home)
    plain = sorted(name for name, local in names.items() if name == local != TORCH)
    if plain:
        module = _merge(module, plain, runtime, home) or _insert(module, _statement(runtime, plain), runtime, home)
    for name, local in sorted(names.items()):
        if name != local:
            line = f"from {runtime} import {name} as {local}"
            module = _insert(module, line, runtime, home)
    return module


def _statement(runtime: str, names: Sequence[str]) -> str:
    line = f"from {runtime} import {', '.join(names)}"
    if len(line) <= _MAX_LINE:
        return line
    return "\n".join([f"from {runtime} import (", *(f"    {name}," for name in names), ")"])


def _merge(module: cst.Module, names: Sequence[str], runtime: str, home: Home) -> cst.Module | None:
    """The names among those that an import of the runtime module lists already; None where there is none."""
    for line in module.body:
        for statement in _small(line):
            if not isinstance(statement, cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
                continue
            if _module_of(statement, home) == runtime and all(alias.asname is None for alias in statement.names):
                aliases = list(statement.names)
                for name in names:
                    aliases = _with_alias(aliases, name)
                changed = module.deep_replace(statement, statement.with_changes(names=aliases))
                return changed if isinstance(changed, cst.Module) else None
    return None


def _with_alias(aliases: list[cst.ImportAlias], name: str) -> list[cst.ImportAlias]:
    """The aliases with `name` in its place in the alphabet, on a line of its own if its neighbours are."""
    new = cst.ImportAlias(name=cst.Name(name))
    at = next((i for i, alias in enumerate(aliases) if str(alias.evaluated_name).lower() > name), len(aliases))
    between = _without_comment(aliases[0].comma if len(aliases) > 1 else None)
    if at < len(aliases):
        return [*aliases[:at], new.with_changes(comma=between), *aliases[at:]]
    last = aliases[-1]
    after = last.comma
    if isinstance(after, cst.Comma) and isinstance(after.whitespace_after, cst.ParenthesizedWhitespace):
        # The comment beside the last name stays there, only the closing parenthesis moves down.
        inner = getattr(between.whitespace_after, "last_line", cst.SimpleWhitespace("    "))
        last = last.with_changes(
            comma=after.with_changes(whitespace_after=after.whitespace_after.with_changes(last_line=inner))
        )
        return [*aliases[:-1], last, new.with_changes(comma=_without_comment(after))]
    return [*aliases[:-1], last.with_changes(comma=between), new.with_changes(comma=after)]


def _without_comment(comma: cst.Comma | cst.MaybeSentinel | None) -> cst.Comma:
    """A comma that separates as the given one does; a comma and a space if there is none."""
    gap = comma.whitespace_after if isinstance(comma, cst.Comma) else None
    if isinstance(gap, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=gap.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=()))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


# --- the place


def _insert(module: cst.Module, code: str, runtime: str, home: Home) -> cst.Module:
    """The module with the import in the block of imports that has torch, sorted as that block is.

    The runtime module imports torch: in a block further up it could run before lines that prepare for torch.
    """
    new = cst.parse_statement(code + "\n", config=module.config_for_parsing)
    block = _block(module)
    if block is None:
        return _insert_alone(module, new)
    start, end = block
    lines = module.body[start:end]
    sections = [_section(line, home) for line in lines]
    section = _FIRST_PARTY if home.is_first_party(runtime) else _THIRD_PARTY
    absolute = sections[: next((i for i, known in enumerate(sections) if known == _LOCAL), len(sections))]
    same = [i for i, known in enumerate(absolute) if known == section]
    if same:
        at = _sorted_position([lines[i] for i in same], same, new)
        if at == same[0]:
            return _insert_opening(module, start + at, new)
        return _inserted(module, start + at, new)
    at = max((i + 1 for i, known in enumerate(absolute) if known < section), default=0)
    if at == 0:
        return _insert_opening(module, start, new, apart=True)
    return _inserted(module, start + at, new.with_changes(leading_lines=[_BLANK]), apart=start + at < end)


def _block(module: cst.Module) -> tuple[int, int] | None:
    """The run of imports to add to: the first with torch, else the first with more than `__future__`."""
    runs: list[tuple[int, int]] = []
    for i, line in enumerate(module.body):
        if not _is_import(line):
            continue
        if runs and runs[-1][1] == i:
            runs[-1] = (runs[-1][0], i + 1)
        else:
            runs.append((i, i + 1))
    tops = [{_sort_name(line).split(".")[0] for line in module.body[start:end]} for start, end in runs]
    with_torch = next((run for run, names in zip(runs, tops, strict=True) if "torch" in names), None)
    first = next((run for run, names in zip(runs, tops, strict=True) if names != {"__future__"}), None)
    return with_torch or first or (runs[0] if runs else None)


def _small(line: cst.CSTNode) -> Sequence[cst.BaseSmallStatement]:
    return line.body if isinstance(line, cst.SimpleStatementLine) else ()


def _is_import(line: cst.CSTNode) -> bool:
    small = _small(line)
    return bool(small) and all(isinstance(statement, (cst.Import, cst.ImportFrom)) for statement in small)


def _module_of(statement: cst.ImportFrom, home: Home) -> str | None:
    dotted = layout.code(statement.module) if statement.module else ""
    return home.absolute(dotted, len(statement.relative))


def _sort_name(line: cst.CSTNode) -> str:
    """The module that an import statement sorts by, dots of a relative import included."""
    statement = _small(line)[0]
    if isinstance(statement, cst.ImportFrom):
        return "." * len(statement.relative) + (layout.code(statement.module) if statement.module else "")
    assert isinstance(statement, cst.Import)
    return layout.code(statement.names[0].name)


def _section(line: cst.CSTNode, home: Home) -> int:
    name = _sort_name(line)
    top = name.split(".")[0]
    if not top:
        return _LOCAL
    if top == "__future__":
        return _FUTURE
    if top in sys.stdlib_module_names:
        return _STDLIB
    return _FIRST_PARTY if home.is_first_party(name) else _THIRD_PARTY


def _sorted_position(lines: Sequence[cst.CSTNode], indexes: Sequence[int], new: cst.CSTNode) -> int:
    """Where `new` goes among `lines`: by the first of the usual orders that they keep, else last."""
    for key in (_by_form_and_name, _by_name):
        keys = [key(line) for line in lines]
        if keys == sorted(keys):
            wanted = key(new)
            return next((i for i, known in zip(indexes, keys, strict=True) if known > wanted), indexes[-1] + 1)
    return indexes[-1] + 1


_Key = tuple[object, ...]


def _by_form_and_name(line: cst.CSTNode) -> _Key:
    """`import x` before `from x import y`: what isort and ruff do unless told otherwise."""
    return (isinstance(_small(line)[0], cst.ImportFrom), *_by_name(line))


def _by_name(line: cst.CSTNode) -> _Key:
    """The order of `force-sort-within-sections`."""
    statement = _small(line)[0]
    members: str = ""
    if isinstance(statement, cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
        members = str(statement.names[0].evaluated_name).lower()
    return (_natural(_sort_name(line)), isinstance(statement, cst.ImportFrom), members)


def _natural(name: str) -> list[tuple[int, int]]:
    """Digits compare as numbers: `layer2` comes before `layer10`."""
    return [
        (ord("0"), int(part)) if part.isdigit() else (ord(part), 0) for part in re.findall(r"[0-9]+|.", name.lower())
    ]


def _insert_opening(
    module: cst.Module,
    at: int,
    new: cst.SimpleStatementLine | cst.BaseCompoundStatement,
    *,
    apart: bool = False,
) -> cst.Module:
    """`new` in place of the line that opened a paragraph; that line keeps the comments right above it.

    With `apart`, a blank line comes after `new`.
    """
    follower = module.body[at]
    if at == 0:
        above, attached = _split_header(module.header)
        module = module.with_changes(header=above)
    else:
        above, attached = _split(follower.leading_lines)
        new = new.with_changes(leading_lines=above)
    follower = follower.with_changes(leading_lines=[*attached])
    body = [*module.body[:at], follower, *module.body[at + 1 :]]
    # Sorters want a blank line above a comment that follows an import.
    commented = any(line.comment is not None for line in attached)
    return _inserted(module.with_changes(body=body), at, new, apart=apart or commented)


def _insert_alone(module: cst.Module, new: cst.SimpleStatementLine | cst.BaseCompoundStatement) -> cst.Module:
    """`new` as the only import: below the docstring, a blank line apart."""
    if not module.body:
        return module.with_changes(body=[new])
    if module.get_docstring() is not None:
        return _inserted(module, 1, new.with_changes(leading_lines=[_BLANK]), apart=len(module.body) > 1)
    return _insert_opening(module, 0, new, apart=True)


def _inserted(
    module: cst.Module,
    at: int,
    new: cst.SimpleStatementLine | cst.BaseCompoundStatement,
    *,
    apart: bool = False,
) -> cst.Module:
    body = list(module.body)
    if apart:
        follower = body[at]
        wanted = 2 if isinstance(follower, (cst.FunctionDef, cst.ClassDef)) else 1
        blank = next((i for i, line in enumerate(follower.leading_lines) if line.comment is not None), None)
        there = len(follower.leading_lines) if blank is None else blank
        leading = [*[_BLANK] * (wanted - there), *follower.leading_lines]
        body[at] = follower.with_changes(leading_lines=leading)
    return module.with_changes(body=[*body[:at], new, *body[at:]])


def _split_header(
    lines: Sequence[cst.EmptyLine],
) -> tuple[Sequence[cst.EmptyLine], Sequence[cst.EmptyLine]]:
    """Comments at the top are the file's; those below a blank line belong to the first statement."""
    commented = [i for i, line in enumerate(lines) if line.comment is not None]
    if not commented:
        return (), lines
    blank = next((i for i in range(len(lines), 0, -1) if lines[i - 1].comment is None), None)
    if blank is None:
        return lines, ()
    if blank < len(lines):
        return lines[:blank], lines[blank:]
    return lines[: commented[-1] + 2], lines[commented[-1] + 2 :]


def _split(lines: Sequence[cst.EmptyLine]) -> tuple[Sequence[cst.EmptyLine], Sequence[cst.EmptyLine]]:
    """The lines up to the last blank one, and the comments below it, which belong to the statement."""
    at = next((i for i in range(len(lines), 0, -1) if lines[i - 1].comment is None), 0)
    return lines[:at], lines[at:]
