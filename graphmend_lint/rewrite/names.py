"""Names for what a fix imports, that collide with nothing in the file."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphmend_lint.rewrite.home import Home

#: Not a name of the runtime module: stands for `import torch`.
TORCH = "torch"

_PREFIX = "graphmend_"


@dataclass(frozen=True, slots=True)
class Names:
    """What each name of the runtime module is called in the file, and which must still be imported."""

    local: Mapping[str, str]
    missing: Mapping[str, str]


def choose(tree: ast.Module, needed: Collection[str], runtime: str, home: Home) -> Names:
    """A local name for each needed one: as imported already, else its own, else a fresh one if that is taken.

    A name counts as taken if it occurs anywhere in the file as something else, in whatever scope, or may
    come from an `import *`.
    """
    imported = _imported(tree, runtime, home)
    taken = _taken(tree, imported)
    star = any(
        isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names) for node in tree.body
    )
    local: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in sorted(needed):
        if name == TORCH:
            missing[name] = local[name] = name  # no name of the runtime module: `import torch`
            continue
        known = next((alias for alias in imported.get(name, ()) if alias not in taken), None)
        if known is None:
            known = name if name not in taken and not star else _fresh(name, taken)
            missing[name] = known
        local[name] = known
    return Names(local, missing)


def _imported(tree: ast.Module, runtime: str, home: Home) -> dict[str, list[str]]:
    """The names that unconditional imports at the top level bind to names of the runtime module."""
    found: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and home.absolute(node.module or "", node.level) == runtime:
            for alias in node.names:
                found.setdefault(alias.name, []).append(alias.asname or alias.name)
    return found


def _taken(tree: ast.Module, imported: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Every name that occurs in the file, less those that only ever mean an import of the runtime module."""
    ours = {local for locals_ in imported.values() for local in locals_}
    ours_nodes = {id(node) for node in tree.body if isinstance(node, ast.ImportFrom)}
    taken: set[str] = set()
    for node in ast.walk(tree):
        taken.update(name for name in _names_of(node) if name not in ours or id(node) not in ours_nodes)
        if isinstance(node, ast.Name) and not (isinstance(node.ctx, ast.Load) and node.id in ours):
            taken.add(node.id)
    return frozenset(taken)


def _names_of(node: ast.AST) -> Iterator[str]:
    """The names that a node binds or declares, those in `ast.Name` left out."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, ast.MatchMapping):
        yield from filter(None, [node.rest])
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) or type(node).__name__ in _TYPE_PARAMS:
        yield from filter(None, [getattr(node, "name", None)])


_TYPE_PARAMS = frozenset({"TypeVar", "ParamSpec", "TypeVarTuple"})


def _fresh(name: str, taken: Collection[str]) -> str:
    candidate = _PREFIX + name
    number = 2
    while candidate in taken:
        candidate = f"{_PREFIX}{name}_{number}"
        number += 1
    return candidate
