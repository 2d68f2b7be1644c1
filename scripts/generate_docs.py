"""Writes what the documentation repeats from the code: rule pages and their index, tables of rules and configuration.

python scripts/generate_docs.py            # write
python scripts/generate_docs.py --check    # exit 1 if something is stale
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from graphmend_lint import registry
from graphmend_lint.config import KEYS, TARGET_KEYS

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"(<!-- (?P<name>[a-z-]+):start -->\n).*?(<!-- (?P=name):end -->)", re.DOTALL)
_INDEX = """\
# The rules

Each page is what `graphmend rule CODE` prints: what the rule finds, why that is bad, an example before and after, what
makes its fix safe, for which reasons there is none, and PyTorch's own pages on the graph breaks (GB) that it is about.

{table}
`safe` and `unsafe` say what a fix is at best; each finding says what its own is (`[*]` safe, `[-]` unsafe). GM001 is
off unless `report-unused-suppressions` or `select` asks for it; `ALL` and `GM` are the others. Codes are never used
again.
"""


def rule_table(folder: str, cards: Iterable[registry.RuleCard]) -> str:
    """Rules as a Markdown table; `folder` is where the rule pages are, seen from the page."""
    rows = [
        f"| [{card.code}]({folder}{page_name(card)}) | `{card.name}` | {card.title} | {card.fix} | "
        + ", ".join(f"[{number}]({registry.break_page(number)})" for number in card.breaks)
        + " |"
        for card in cards
    ]
    return "\n".join(["| code | name | what | fix | breaks |", "|---|---|---|---|---|", *rows]) + "\n"


def configuration_table() -> str:
    """The keys of `[tool.graphmend]` as a Markdown table."""
    rows = [f"| `{key.name}` | {key.type} | `{key.default}` | {key.doc} |" for key in KEYS]
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def target_table() -> str:
    """The keys of a `[[tool.graphmend.verify]]` table as a Markdown table."""
    rows = [f"| `{name}` | {words} |" for name, (_, words) in TARGET_KEYS.items()]
    return "\n".join(["| key | value |", "|---|---|", *rows]) + "\n"


def page_name(card: registry.RuleCard) -> str:
    return f"{card.code}-{card.name}.md"


def pages() -> dict[Path, str]:
    """Every generated file and what it has to hold."""
    rules = ROOT / "docs" / "rules"
    found = {rules / page_name(card): registry.document(card) for card in registry.described()}
    found[rules / "README.md"] = _INDEX.format(table=rule_table("", registry.described()))
    blocks = {
        "rules": rule_table("docs/rules/", registry.all_rules()),
        "configuration": configuration_table(),
        "targets": target_table(),
    }
    for page in (ROOT / "README.md", ROOT / "docs" / "configuration.md"):
        found[page] = _BLOCK.sub(
            lambda match: match[1] + blocks[match["name"]] + match[3] if match["name"] in blocks else match[0],
            page.read_text(encoding="utf-8"),
        )
    return found


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for path, content in pages().items():
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    for path in stale:
        print(f"{'stale' if check else 'wrote'}: {path}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
