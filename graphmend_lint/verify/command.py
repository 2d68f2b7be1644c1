"""`graphmend verify`: targets, both arms of each, a report and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from graphmend_lint.verify.driver import FixFiles, verify
from graphmend_lint.verify.launcher import Launcher
from graphmend_lint.verify.options import Options
from graphmend_lint.verify.report import print_verdict
from graphmend_lint.verify.target import BadTarget, TargetSpec
from graphmend_lint.verify.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Request:
    """A target to verify, and how; `folder` is the one that the target counts from."""

    target: str
    fix_files: FixFiles
    folder: Path = field(default_factory=Path.cwd)
    fix_paths: tuple[Path, ...] = ()
    options: Options = field(default_factory=Options)


def run(
    target: str,
    fix_files: FixFiles,
    *,
    fix_paths: Iterable[Path] = (),
    options: Options | None = None,
    json_output: bool = False,
    html: Path | None = None,
    launcher: Launcher | None = None,
) -> int:
    """Verifies one target and prints; 0 proven, 1 a difference or no improvement, 2 could not run.

    This runs the user's code, in subprocesses.
    """
    request = Request(target, fix_files, fix_paths=tuple(fix_paths), options=options or Options())
    return run_all([request], json_output=json_output, html=html, launcher=launcher)


def run_all(
    requests: Sequence[Request],
    *,
    json_output: bool = False,
    html: Path | None = None,
    launcher: Launcher | None = None,
) -> int:
    """Verifies targets one after the other; the exit code is the largest one of them.

    As JSON, one target is an object and several are an array. `html` is where a page goes that shows all.
    """
    verdicts = []
    with nullcontext(launcher) if launcher else Launcher() as started:
        for request in requests:
            verdicts.append(_verdict(request, started))
            if not json_output:
                print_verdict(verdicts[-1], Console(stderr=verdicts[-1].status == "could not run"))
    if json_output:
        records = [verdict.to_json() for verdict in verdicts]
        sys.stdout.write(json.dumps(records[0] if len(records) == 1 else records, indent=2) + "\n")
    if html is not None:
        from graphmend_lint.verify.page import page

        html.write_text(page(verdicts), encoding="utf-8")
    return max(verdict.exit_code for verdict in verdicts)


def _verdict(request: Request, launcher: Launcher) -> Verdict:
    try:
        spec = TargetSpec.parse(request.target, request.folder)
    except BadTarget as error:
        return Verdict(request.target, "could not run", str(error))
    missing = next((path for path in request.fix_paths if not path.exists()), None)
    if missing is not None:
        return Verdict(request.target, "could not run", f"no such file or folder: {missing}")
    return verify(spec, request.fix_files, fix_paths=request.fix_paths, options=request.options, launcher=launcher)
