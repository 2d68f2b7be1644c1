"""`graphmend vendor`."""

from __future__ import annotations

from pathlib import Path

import click

from graphmend_lint.commands.common import CONTEXT, Failure


@click.command(context_settings=CONTEXT)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite a file that is not an older copy.")
def vendor(path: Path, force: bool) -> None:
    """Copy the runtime module into your package, so that fixed code needs only torch.

    PATH is a package folder or a .py file. Set `runtime-module` in [tool.graphmend] to the copy's module name, and
    fixes import from it.

    \b
    Example:
      graphmend vendor src/mypackage
    """
    from graphmend_lint.vendor import vendor as copy

    try:
        click.echo(f"wrote {copy(path, force=force)}")
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from error
