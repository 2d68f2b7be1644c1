"""`graphmend rules` and `graphmend rule`."""

from __future__ import annotations

import json
from typing import Any

import click

from graphmend_lint.commands.common import CONTEXT, one_line_errors


@click.command(context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def rules(as_json: bool) -> None:
    """List the rules."""
    from graphmend_lint import registry

    with one_line_errors():
        cards = registry.described()
    if as_json:
        click.echo(json.dumps([_card(card) for card in cards], indent=2))
        return
    for card in cards:
        click.echo(f"{card.code}  {card.name:16} {card.fix:7} {', '.join(card.breaks):16} {card.title}")


@click.command(context_settings=CONTEXT)
@click.argument("name", metavar="RULE")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def rule(name: str, as_json: bool) -> None:
    """Explain a rule, given by code or name."""
    from graphmend_lint import registry

    with one_line_errors():
        card = registry.find(name)
    click.echo(json.dumps(_card(card), indent=2) if as_json else registry.document(card))


def _card(card: Any) -> dict[str, Any]:
    from graphmend_lint import registry

    return {
        "code": card.code,
        "name": card.name,
        "title": card.title,
        "category": card.category,
        "gb": list(card.breaks),
        "fix": card.fix,
        "torch": card.torch,
        "since": card.since,
        "tags": sorted(card.tags),
        "options": [{"name": o.name, "type": o.type, "default": o.default, "doc": o.doc} for o in card.options],
        "doc": registry.document(card),
    }
