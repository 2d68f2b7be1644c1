"""Messages: which calls speak, and what of them the runtime carries."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from graphmend_lint.analysis.facts import FileFacts, FunctionFacts
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.values import Env
from graphmend_lint.findings import Confidence, Edit, Reason
from graphmend_lint.transforms.carry import Card, Carrier, Obstacle

_PRINT_KEYWORDS = frozenset({"sep", "end", "flush", "file"})
_WARN_KEYWORDS = frozenset({"message", "category", "stacklevel"})
#: Checks of torch: not messages, so they are never skipped, and not a break where they look at no tensor.
CHECKS = frozenset({"_check_tensor_all", "_check_tensor_all_with", "_assert"})
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})


@dataclass(slots=True)
class Site:
    """A call that matched a rule."""

    card: Card
    call: ast.Call
    target: ast.expr
    callee: str
    family: str
    confidence: Confidence
    obstacle: Obstacle | None = None

    @property
    def arguments(self) -> list[ast.expr]:
        """The values that are handed over, by position and by keyword."""
        return [*self.call.args, *(keyword.value for keyword in self.call.keywords)]


class Messages(Carrier):
    """The calls of one function that are messages, or checks, by the rules in `cards`."""

    def __init__(self, facts: FileFacts, function: FunctionFacts, cards: Iterable[Card]) -> None:
        super().__init__(facts, function)
        cards = list(cards)
        self.calls = {name: card for card in cards for name in card.calls}
        self.methods = {name: card for card in cards for name in card.methods}

    def site(self, call: ast.Call) -> Site | None:
        """The rule that a call falls under."""
        func = call.func
        name = self.facts.bindings.qualified(func, self.scope) or ""
        module, _, last = name.rpartition(".")
        card = self.calls.get(name)
        if card is None and module == "logging":
            card, last = self.methods.get(last), "logger"
        if card is not None:
            return Site(card, call, func, dotted(func) or name, last, self.function.region.confidence)
        if not isinstance(func, ast.Attribute) or func.attr not in self.methods:
            return None
        kind = self.facts.loggers.kind(func.value, self.scope)
        if kind is None:
            return None
        site = Site(
            self.methods[func.attr],
            call,
            func.value,
            self.facts.source.segment(func),
            "logger",
            "likely" if kind == "maybe" else self.function.region.confidence,
        )
        if kind == "maybe":
            site.obstacle = Obstacle(
                Reason.LOGGER_NOT_RESOLVED,
                f"`{self.facts.source.segment(func.value)}` is not known to be a logging.Logger",
            )
        elif kind == "local":
            site.obstacle = Obstacle(
                Reason.LOGGER_MADE_HERE,
                f"`{self.facts.source.segment(func.value)}` is made inside the function",
            )
        return site

    def arguments(self, site: Site, env: Env) -> list[Edit]:
        """The edits that make every argument one that the runtime carries.

        Raises:
            Obstacle: an argument is something else.
        """
        edits: list[Edit] = []
        for argument in site.call.args:
            edits += self.carry(argument, env)
        for keyword in site.call.keywords:
            edits += self._keyword(site, keyword, env)
        if site.callee.rpartition(".")[2] == "exception":
            raise Obstacle(Reason.KEYWORD_NOT_CARRIED, "`exception` prints the exception being handled")
        return edits

    def _keyword(self, site: Site, keyword: ast.keyword, env: Env) -> list[Edit]:
        name = keyword.arg
        if name is None:
            raise Obstacle(Reason.STAR_ARGUMENTS, f"`**{self.text(keyword.value)}` hides the keywords")
        if site.family == "print" and name in _PRINT_KEYWORDS:
            if name == "file" and self.facts.bindings.qualified(keyword.value, self.scope) not in _STREAMS:
                if not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
                    raise Obstacle(
                        Reason.KEYWORD_NOT_CARRIED,
                        f"`file={self.text(keyword.value)}` is not sys.stdout or sys.stderr",
                    )
                return []
            return [] if name == "file" else self.carry(keyword.value, env)
        if site.family == "warn" and name in _WARN_KEYWORDS:
            return self.carry(keyword.value, env)
        if site.family in CHECKS:
            return self.carry(keyword.value, env)
        if site.family == "logger":
            if name == "stacklevel" and isinstance(keyword.value, ast.Constant):
                return []
            if (
                name in ("exc_info", "stack_info")
                and isinstance(keyword.value, ast.Constant)
                and not keyword.value.value
            ):
                return []
        raise Obstacle(Reason.KEYWORD_NOT_CARRIED, f"the keyword `{name}` of `{site.callee}` cannot be carried")
