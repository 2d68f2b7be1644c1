"""Loggers: which names hold a `logging.Logger`, also through wrappers of `getLogger` and other files."""

from __future__ import annotations

import ast
from typing import Literal

from graphmend_lint.analysis.bindings import Bindings, Scope
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.project import Symbol

#: "logger": a `logging.Logger`. "maybe": named like one, not resolved. "local": made inside the function.
LoggerKind = Literal["logger", "maybe", "local"]

MAKERS = frozenset(
    {
        "logging.getLogger",
        "logging.root.getChild",
        "transformers.utils.logging.get_logger",
        "diffusers.utils.logging.get_logger",
        "datasets.utils.logging.get_logger",
        "datasets.logging.get_logger",
        "huggingface_hub.utils.logging.get_logger",
    }
)
_LOGGER_NAMES = frozenset({"logger", "log", "_logger", "_log", "LOGGER", "LOG", "_LOGGER", "_LOG"})
_LOGGER_TYPES = frozenset({"logging.Logger", "Logger"})


class Loggers:
    """Answers for one file, with a memory."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.project = bindings.project
        self._makers: dict[Symbol, bool] = {}

    def kind(self, node: ast.expr, scope: Scope) -> LoggerKind | None:
        """What kind of logger an expression is, None if it is none.

        `logging.getLogger(...)` and `self.logger` are answered as well as names.
        """
        if isinstance(node, ast.Call):
            made = self._is_maker(self.bindings.symbol(node.func, scope))
            return "local" if made or self.bindings.qualified(node.func, scope) in MAKERS else None
        name = dotted(node)
        if name is None:
            return None
        first, _, rest = name.partition(".")
        owner = scope.owner(first)
        if first in ("self", "cls") and rest and scope.class_name:
            return self._attribute(Symbol("class", self.bindings.path, scope.class_name), rest)
        if owner is not None:
            return self._local(owner, first) if not rest else None
        symbol = self.project.resolve(self.bindings.path, name)
        if symbol.kind == "value" and symbol.path is not None:
            return self._value(symbol)
        if symbol.kind == "external" and name.rpartition(".")[2] in _LOGGER_NAMES:
            return "maybe"
        return None

    def _value(self, symbol: Symbol) -> LoggerKind | None:
        summary = self.project.summary(symbol.path) if symbol.path else None
        callee = summary.assigned_calls.get(symbol.name) if summary else None
        if callee is None or symbol.path is None:
            return "maybe" if symbol.name in _LOGGER_NAMES else None
        return self._made_by(self.project.resolve(symbol.path, callee), symbol.name)

    def _made_by(self, callee: Symbol, name: str) -> LoggerKind | None:
        if self._is_maker(callee):
            return "logger"
        return "maybe" if name in _LOGGER_NAMES else None

    def _attribute(self, owner: Symbol, name: str) -> LoggerKind | None:
        for ancestor in self.project.ancestors(owner):
            summary = self.project.class_(ancestor)
            if summary and ancestor.path and name in summary.attributes:
                return self._made_by(self.project.resolve(ancestor.path, summary.attributes[name]), name)
        return "maybe" if name in _LOGGER_NAMES else None

    def _local(self, owner: Scope, name: str) -> LoggerKind | None:
        arguments = owner.node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.arg == name:
                annotation = self.bindings.qualified(argument.annotation, None) if argument.annotation else None
                if annotation in _LOGGER_TYPES:
                    return "logger"
                return "maybe" if name in _LOGGER_NAMES else None
        for node in ast.walk(owner.node):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
            ):
                return "local" if self.kind(node.value, owner) else None
        return "maybe" if name in _LOGGER_NAMES else None

    def _is_maker(self, symbol: Symbol | None, depth: int = 0) -> bool:
        """Whether a call of `symbol` gives a logger: `logging.getLogger` or a function that returns its result."""
        if symbol is None or depth > 4:
            return False
        if symbol.path is None:
            return symbol.name in MAKERS
        if symbol not in self._makers:
            function = self.project.function(symbol)
            self._makers[symbol] = False
            if function is not None:
                path = symbol.path
                made = (
                    r.removesuffix("()") if r.endswith("()") else function.locals.get(r, "") for r in function.returns
                )
                returned = list(made)
                self._makers[symbol] = bool(returned) and all(
                    self._is_maker(self.project.resolve(path, r), depth + 1) for r in returned
                )
        return self._makers[symbol]
