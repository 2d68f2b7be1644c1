"""The rules there are, read from their files without running them.

A rule declares itself with literals in its class body; this module reads those with `ast`, so that naming,
listing and selecting rules costs no import of LibCST or Fixit. `load` imports a rule for the one who needs
its code.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from graphmend_lint.config import KEYS, Key
from graphmend_lint.findings import ADVICE, Reason

PACKAGE = "graphmend"
ALL = "ALL"

HEADINGS = (
    "What it does",
    "Why is this bad",
    "Example",
    "Use instead",
    "Fix safety",
    "When no fix is offered",
    "Options",
    "References",
)

# Codes are never used again: a rule that goes leaves its code here, with the code that took over, "" for
# none.
RETIRED: Mapping[str, str] = {}

#: What the linter reports without a rule of Fixit's.
_OWN = Path(__file__).with_name("unused_suppression.py")

_CODE = re.compile(r"GM[1-9]\d\d")
_BREAK = re.compile(r"GB\d{4}")
_FIXES = ("safe", "unsafe", "none")
_REQUIRED = (
    "CODE",
    "SINCE",
    "FIX",
    "TITLE",
    "CATEGORY",
    "TAGS",
    "BREAKS",
    "TORCH",
    "TRANSFORM",
    "VALID",
    "INVALID",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A snippet that a rule shows: one it is silent about, or one it reports, and its fixed form."""

    code: str
    expected_replacement: str | None = None
    expected_message: str | None = None


@dataclass(frozen=True, slots=True)
class RuleCard:
    """All that a rule declares about itself."""

    code: str
    name: str
    class_name: str
    title: str
    category: str
    breaks: tuple[str, ...]
    fix: str
    torch: str
    since: str
    transform: str
    calls: tuple[str, ...]
    methods: tuple[str, ...]
    options: tuple[Key, ...]
    tags: frozenset[str]
    doc: str
    valid: tuple[Case, ...]
    invalid: tuple[Case, ...]
    path: Path

    @property
    def module(self) -> str:
        return f"{PACKAGE}.{self.path.stem}"

    def section(self, heading: str) -> str:
        """The text under a heading of the rule's documentation, "" if it lacks the heading."""
        return _sections(self.doc).get(heading, "")

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "name": self.name,
            "title": self.title,
            "category": self.category,
            "fix": self.fix,
            "breaks": list(self.breaks),
            "torch": self.torch,
            "since": self.since,
            "tags": sorted(self.tags),
            "options": [
                {"name": key.name, "type": key.type, "default": key.default, "doc": key.doc} for key in self.options
            ],
            "documentation": document(self),
        }


class UnknownRule(ValueError):
    """No rule is called `name`; `suggestion` is the nearest code or name, None if none is near."""

    def __init__(self, name: str, suggestion: str | None) -> None:
        self.name, self.suggestion = name, suggestion
        hint = f"; did you mean `{suggestion}`?" if suggestion else ""
        if name in RETIRED:
            hint = f"; it was retired, use `{RETIRED[name]}`" if RETIRED[name] else "; it was retired"
        super().__init__(f"unknown rule `{name}`{hint}")


class RulesMissing(RuntimeError):
    """The package with the rules cannot be found, or a rule in it cannot be read."""


def kebab_case(class_name: str) -> str:
    """The name that people use for the rule of a class: `PrintCall` is `print-call`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", class_name).lower()


# --- asking


@cache
def all_rules() -> tuple[RuleCard, ...]:
    """Every rule, by code."""
    return tuple(sorted(read_rules(_folder()), key=lambda card: card.code))


@cache
def described() -> tuple[RuleCard, ...]:
    """Whatever can be reported, by code: the rules, and what the linter itself says of comments that silence them."""
    return (*_read_file(_OWN), *all_rules())


def find(code_or_name: str) -> RuleCard:
    """The rule with this code or this name; `UnknownRule` if there is none."""
    wanted = code_or_name.strip()
    for card in described():
        if wanted.upper() == card.code or wanted.lower() == card.name:
            return card
    raise _unknown(wanted)


def current_code(code: str) -> str | None:
    """What the rule with this code, which may be a retired one, is called now; None where nothing took over.

    Raises:
        UnknownRule: there never was such a code.
    """
    current = code
    while current in RETIRED:
        current = RETIRED[current]
    if current and not any(card.code == current for card in described()):
        raise _unknown(code)
    return current or None


def select(patterns: Iterable[str]) -> tuple[RuleCard, ...]:
    """The rules that any of the patterns names: a code, the first characters of codes, a name, or "ALL".

    "ALL" and "GM" are the rules about graph breaks; what the linter says of suppressions has to be named.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        wanted = pattern.strip()
        if wanted.upper() in (ALL, "GM"):
            matching = {card.code for card in all_rules()}
        else:
            matching = {card.code for card in described() if _names(wanted, card)}
        if not matching:
            raise _unknown(wanted)
        chosen |= matching
    return tuple(card for card in described() if card.code in chosen)


def _names(wanted: str, card: RuleCard) -> bool:
    return wanted.lower() == card.name or (wanted.upper().startswith("GM") and card.code.startswith(wanted.upper()))


def load(card: RuleCard) -> Any:
    """The class of the rule. Imports Fixit and LibCST."""
    return getattr(importlib.import_module(card.module), card.class_name)


def break_page(number: str) -> str:
    """PyTorch's own page on a kind of graph break, such as GB0291."""
    return f"https://meta-pytorch.github.io/compile-graph-break-site/gb/{number.lower()}.html"


def document(card: RuleCard) -> str:
    """The rule's documentation in Markdown: the docstring, the tables of reasons and options filled in."""
    parts = [f"# {card.code} {card.name}", card.title]
    tables = {"When no fix is offered": _reasons_table(card), "Options": _options_table(card)}
    for heading, text in _sections(card.doc).items():
        parts.append(f"## {heading}")
        parts.extend(filter(None, [text, tables.get(heading, "")]))
    return "\n\n".join(parts) + "\n"


def _unknown(name: str) -> UnknownRule:
    known = [name for card in described() for name in (card.code, card.name)]
    near = difflib.get_close_matches(name.upper(), known, 1) or difflib.get_close_matches(name.lower(), known, 1)
    return UnknownRule(name, near[0] if near else None)


def _reasons_table(card: RuleCard) -> str:
    rows = [f"| `{reason.value}` | {ADVICE[reason]} |" for reason in reasons_of(card)]
    if not rows:
        return "There always is one."
    return "\n".join(["| reason | what to do |", "|---|---|", *rows])


def reasons_of(card: RuleCard) -> tuple[Reason, ...]:
    """The reasons for which the rule's transformation declines, in the order of `Reason`."""
    if not card.transform:
        return ()
    module = importlib.import_module(f"graphmend_lint.transforms.{card.transform}")
    known = frozenset(module.REASONS)
    return tuple(reason for reason in Reason if reason in known)


def _options_table(card: RuleCard) -> str:
    if not card.options:
        return "None."
    rows = [f"| `{key.name}` | {key.type} | `{key.default}` | {key.doc} |" for key in card.options]
    return "\n".join(["| configuration key | values | default | meaning |", "|---|---|---|---|", *rows])


def _sections(doc: str) -> dict[str, str]:
    """The texts under the second-level headings of a docstring."""
    found: dict[str, str] = {}
    for part in re.split(r"^## ", doc, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        found[heading.strip()] = text.strip()
    return found


# --- reading


def _folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise RulesMissing(f"the package `{PACKAGE}` with the rules is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def read_rules(folder: Path) -> list[RuleCard]:
    """The rules in the files of a folder, in the order of the files."""
    cards: list[RuleCard] = []
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("_"):
            cards.extend(_read_file(path))
    return cards


def _read_file(path: Path) -> Iterator[RuleCard]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError) as error:
        raise RulesMissing(f"the rule file {path.name} cannot be read: {error}") from error
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            declared = _declarations(node)
            if "CODE" in declared:
                yield _card(node, declared, path)


def _declarations(node: ast.ClassDef) -> dict[str, Any]:
    """The upper-case names that the class body binds to literals."""
    declared: dict[str, Any] = {}
    for statement in node.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target: ast.expr = statement.targets[0]
            value: ast.expr | None = statement.value
        elif isinstance(statement, ast.AnnAssign):
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Name) and value is not None:
            pairs = [(target, value)]
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = [(t, v) for t, v in zip(target.elts, value.elts, strict=False) if isinstance(t, ast.Name)]
        else:
            continue
        for name, expression in pairs:
            if name.id in ("VALID", "INVALID"):
                declared[name.id] = _cases(expression)
            elif name.id.isupper():
                _add_literal(declared, name.id, expression)
    return declared


def _add_literal(declared: dict[str, Any], name: str, expression: ast.expr) -> None:
    try:
        declared[name] = ast.literal_eval(expression)
    except ValueError:
        return  # code for those who import the class, such as MATCHER


def _cases(expression: ast.expr) -> tuple[Case, ...]:
    """The cases of a VALID or INVALID list: strings, or Fixit's `Valid` and `Invalid` with literals."""
    if not isinstance(expression, (ast.List, ast.Tuple)):
        return ()
    return tuple(_case(element) for element in expression.elts)


def _case(element: ast.expr) -> Case:
    if not isinstance(element, ast.Call):
        return Case(_text(ast.literal_eval(element)) or "")
    values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in element.keywords if keyword.arg}
    code = ast.literal_eval(element.args[0]) if element.args else values.get("code", "")
    return Case(_text(code) or "", _text(values.get("expected_replacement")), values.get("expected_message"))


def _text(value: Any) -> str | None:
    """A snippet as Fixit reads it: no line break in front, no common indentation."""
    return None if value is None else inspect.cleandoc(value) + "\n"


def _card(node: ast.ClassDef, declared: Mapping[str, Any], path: Path) -> RuleCard:
    missing = [name for name in _REQUIRED if name not in declared]
    if missing:
        raise RulesMissing(f"the rule {node.name} in {path.name} does not declare {', '.join(missing)} as literals")
    return RuleCard(
        code=declared["CODE"],
        name=kebab_case(node.name),
        class_name=node.name,
        title=declared["TITLE"],
        category=declared["CATEGORY"],
        breaks=tuple(declared["BREAKS"]),
        fix=declared["FIX"],
        torch=declared["TORCH"],
        since=declared["SINCE"],
        transform=declared["TRANSFORM"],
        calls=tuple(declared.get("CALLS", ())),
        methods=tuple(declared.get("METHODS", ())),
        options=tuple(_option(name, path) for name in declared.get("OPTIONS", ())),
        tags=frozenset(declared["TAGS"]),
        doc=ast.get_docstring(node) or "",
        valid=declared["VALID"],
        invalid=declared["INVALID"],
        path=path,
    )


def _option(name: str, path: Path) -> Key:
    key = next((key for key in KEYS if key.name == name), None)
    if key is None:
        raise RulesMissing(f"the option {name} in {path.name} is no key of the configuration")
    return key


# --- checking


def check(cards: Sequence[RuleCard] | None = None) -> list[str]:
    """What is wrong with the rules' declarations, one line each; empty if all is well."""
    rules = all_rules() if cards is None else cards
    problems = [f"{card.code}: {problem}" for card in rules for problem in _problems(card)]
    for what, values in (
        ("code", [card.code for card in rules]),
        ("name", [card.name for card in rules]),
    ):
        problems.extend(f"{value}: {what} used twice" for value in sorted({v for v in values if values.count(v) > 1}))
    return problems


def _problems(card: RuleCard) -> Iterator[str]:
    if not _CODE.fullmatch(card.code):
        yield "the code is not of the form GM201"
    if card.code in RETIRED:
        yield "the code is retired"
    if card.fix not in _FIXES:
        yield f"FIX is none of {', '.join(_FIXES)}"
    if card.code.lower() not in card.tags:
        yield "the tags lack the code"
    if any(tag != tag.lower() for tag in card.tags):
        yield "a tag is not lower case"
    yield from (f"{number} is not of the form GB0291" for number in card.breaks if not _BREAK.fullmatch(number))
    headings = tuple(_sections(card.doc))
    if headings != HEADINGS:
        yield f"the documentation has the headings {list(headings)}"
    yield from (
        f"nothing under {heading!r}"
        for heading in ("What it does", "Why is this bad", "Fix safety")
        if not card.section(heading)
    )
    if not card.valid or not card.invalid:
        yield "no VALID or no INVALID case"
    if card.fix == "safe" and not any(case.expected_replacement for case in card.invalid):
        yield "no INVALID case shows the fix"
    if card.path.stem != card.name.replace("-", "_"):
        yield f"the file is not called {card.name.replace('-', '_')}.py"
