"""The command `graphmend`.

Exit codes of every command: 0 nothing found (or proven), 1 findings (or not proven), 2 something could not be done.
"""

from __future__ import annotations

import click

from graphmend_lint import __version__
from graphmend_lint.commands.check import check
from graphmend_lint.commands.common import CONTEXT
from graphmend_lint.commands.explain import explain
from graphmend_lint.commands.fix import fix
from graphmend_lint.commands.lint import lint
from graphmend_lint.commands.rules import rule, rules
from graphmend_lint.commands.vendor import vendor
from graphmend_lint.commands.verify import verify


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="graphmend")
def main() -> None:
    """Find, fix and verify PyTorch 2 graph breaks.

    \b
    Examples:
      graphmend lint src/                        what breaks the graph, and why
      graphmend fix --diff src/                  what would change
      graphmend fix src/                         change it
      graphmend verify mymodels.bert:build       prove it, on this machine
      graphmend check                            only what a committed baseline does not know, for CI
      graphmend explain src/model.py:42          why a line is flagged, or why not
      graphmend rule GM202                       what a rule is about
    """


for _command in (lint, fix, verify, check, explain, rules, rule, vendor):
    main.add_command(_command)
