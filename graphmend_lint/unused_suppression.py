"""GM001: a comment that silences a rule where the rule has nothing to say.

No rule of Fixit's: such a rule sees its own findings alone, and whether a comment is in use shows when all rules are
done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend_lint.findings import Edit, Finding, Plan, Span

if TYPE_CHECKING:
    from graphmend_lint.analysis.source import Source
    from graphmend_lint.registry import RuleCard
    from graphmend_lint.suppressions import Directive, Name, Suppressions

CODE = "GM001"
#: The kind of the edit that rewrites a part of a comment.
EDIT = "comment"

_OUR_CODE = re.compile(r"gm\d{3}", re.IGNORECASE)
#: What the rules of other linters look like in a `noqa`: E501.
_CODED = re.compile(r"[A-Za-z]+\d+")


class UnusedSuppression:
    """
    ## What it does
    Finds comments that silence a rule of graphmend-lint (`# noqa: GM201`, `# lint-ignore: print-call`,
    `# graphmend: noqa`) where that rule has nothing to say, and those that name a code that does not exist.

    ## Why is this bad
    The comment says that there is a graph break where there is none, and it will hide the next one.

    ## Example
    ```python
    @torch.compile
    def double(x: torch.Tensor):
        return 2 * x  # twice  # noqa: E501, GM201
    ```

    ## Use instead
    ```python
    @torch.compile
    def double(x: torch.Tensor):
        return 2 * x  # twice  # noqa: E501
    ```

    ## Fix safety
    Safe: only the comment changes, and names of other linters' rules stay in it. Only rules that were run count, and
    comments without names are left alone: they may be there for another linter.

    ## When no fix is offered

    ## Options

    ## References
    """

    CODE, SINCE, FIX = "GM001", "0.3", "safe"
    TITLE, CATEGORY = "a comment silences nothing", "suppression"
    TAGS = {"gm001", "suppressions"}  # noqa: RUF012 (read by the registry, which wants literals)
    BREAKS, TORCH = (), ">=2.0"
    TRANSFORM = ""
    OPTIONS = ("report-unused-suppressions",)

    VALID = ["x = 1  # noqa: E501\n"]  # noqa: RUF012
    INVALID = ["x = 1  # noqa: GM201\n"]  # noqa: RUF012


def find(
    comments: Suppressions, found: Sequence[Finding], cards: Sequence[RuleCard], source: Source
) -> Iterator[Finding]:
    """The directives that silence none of `found`, all that the rules `cards` have to say of a file."""
    card = next((card for card in cards if card.code == CODE), None)
    if card is None or not comments.directives:
        return
    used: dict[Directive, list[Finding]] = {directive: [] for directive in comments.directives}
    for finding in found:
        for directive in comments.silencing(finding):
            used[directive].append(finding)
    ran = frozenset(card.code for card in cards)
    for directive, silenced in used.items():
        if directive.names:
            idle = [name for name in directive.names if _is_idle(name, silenced, ran)]
            if idle:
                yield _finding(card, directive, idle, source)
        elif directive.whole_file and not silenced and _all_codes() <= ran:
            yield _finding(card, directive, [], source)


def _is_idle(name: Name, silenced: Sequence[Finding], ran: frozenset[str]) -> bool:
    if any(name.means(finding.code, finding.rule) for finding in silenced):
        return False
    if name.text.upper() == CODE:
        return False
    meant = _meant(name)
    return meant <= ran if meant else _OUR_CODE.fullmatch(name.text) is not None


def _meant(name: Name) -> frozenset[str]:
    """The codes of the rules that a name stands for."""
    from graphmend_lint import registry

    return frozenset(card.code for card in registry.all_rules() if name.means(card.code, card.name))


def _all_codes() -> frozenset[str]:
    from graphmend_lint import registry

    return frozenset(card.code for card in registry.all_rules())


def _finding(card: RuleCard, directive: Directive, idle: Sequence[Name], source: Source) -> Finding:
    line = source.lines[directive.line - 1]
    if idle:
        unknown = [name.text for name in idle if not _meant(name)]
        what = " and ".join(f"`{name.text}`" for name in idle)
        verb = "name no rule" if len(idle) > 1 else "names no rule"
        message = f"{what} {verb if len(unknown) == len(idle) else 'has nothing to silence here'}; remove it"
    else:
        message = "`# graphmend: noqa` has nothing to silence in this file; remove it"
    span = Span(directive.line, directive.start, directive.line, directive.end)
    edit = Edit(EDIT, span, _rest(directive, idle, line))
    return Finding(
        card.code,
        card.name,
        str(source.path),
        span,
        message,
        "definite",
        "safe",
        None,
        (),
        None,
        Plan(span, (edit,), (), "remove what silences nothing"),
    )


def _rest(directive: Directive, idle: Sequence[Name], line: str) -> str:
    """What is left of a directive: the list without the idle names, "" where it would list nothing else."""
    left = [name for name in directive.names if name not in idle]
    if not any(_meant(name) or _is_of_others(name, directive, line) for name in left):
        return ""
    text = line[directive.start : directive.end]
    for name in reversed(idle):
        start, end = name.start - directive.start, name.end - directive.start
        text = _without(text, start, end)
    return text


def _is_of_others(name: Name, directive: Directive, line: str) -> bool:
    """Whether it is a rule of another linter, and no word of a reason."""
    if _CODED.fullmatch(name.text):
        return True
    in_list = line[: name.start].rstrip().endswith(",") or line[name.end :].lstrip().startswith(",")
    return directive.kind != "noqa" and (in_list or name.text[0].isupper())


def _without(text: str, start: int, end: int) -> str:
    """A list without the name at `start` to `end`, and without the comma that it leaves behind."""
    before, after = text[:start], text[end:]
    if match := re.match(r"\s*,\s*|\s+(?=\w)", after):
        return before + after[match.end() :]
    return re.sub(r"\s*,?\s*$", "", before) + after
