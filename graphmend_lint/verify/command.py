"""`graphmend verify`: one target, both arms, a report and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from graphmend_lint.verify.driver import FixFiles, verify
from graphmend_lint.verify.options import Options
from graphmend_lint.verify.report import print_verdict
from graphmend_lint.verify.target import BadTarget, TargetSpec
from graphmend_lint.verify.verdict import Verdict


def run(
    target: str,
    fix_files: FixFiles,
    *,
    fix_paths: Iterable[Path] = (),
    options: Options | None = None,
    json_output: bool = False,
) -> int:
    """Verifies and prints; 0 proven, 1 a difference or no improvement, 2 could not run.

    This runs the user's code, in subprocesses.
    """
    verdict = _verdict(target, fix_files, fix_paths, options)
    if json_output:
        sys.stdout.write(json.dumps(verdict.to_json(), indent=2) + "\n")
    else:
        print_verdict(verdict, Console(stderr=verdict.status == "could not run"))
    return verdict.exit_code


def _verdict(target: str, fix_files: FixFiles, fix_paths: Iterable[Path], options: Options | None) -> Verdict:
    try:
        spec = TargetSpec.parse(target)
    except BadTarget as error:
        return Verdict(target, "could not run", str(error))
    missing = next((path for path in fix_paths if not path.exists()), None)
    if missing is not None:
        return Verdict(target, "could not run", f"no such file or folder: {missing}")
    return verify(spec, fix_files, fix_paths=fix_paths, options=options)
