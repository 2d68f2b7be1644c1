"""The output formats: one entry for all commands that list findings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_lint.report import text

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult
    from graphmend_lint.findings import Finding

#: The names of the formats, the default first.
FORMATS: tuple[str, ...] = ("text", "json", "sarif", "github", "gitlab", "junit")


def render(
    name: str,
    findings: Sequence[Finding],
    errors: Sequence[FileResult],
    root: Path,
    given: Mapping[str, bytes] | None = None,
) -> list[str]:
    """The findings in the format `name`, as lines without line ends.

    `errors` are the files that could not be linted; formats other than "text" and "json" list them too. Paths are
    relative to `root`, in the formats of code hosts to the top of the repository around it. `given` has the sources
    that do not come from the disk (`Report.given`).
    """
    if name == "text":
        return [text.line(finding, root) for finding in findings]
    if name == "json":
        return [json.dumps([finding.to_json() for finding in findings], indent=2)]
    # Imported here: most runs need none of them.
    from graphmend_lint.report import github, gitlab, junit, sarif
    from graphmend_lint.report.place import Texts, repository_root

    writers = {"sarif": sarif.lines, "github": github.lines, "gitlab": gitlab.lines, "junit": junit.lines}
    return writers[name](findings, errors, repository_root(root), Texts(given))
