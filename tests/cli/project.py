"""A temporary project, and the command `graphmend` run in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from graphmend_lint import cli, config, discovery, index

ROOT = Path(__file__).parents[2]
COMMAND = "from graphmend_lint.cli import main; main(prog_name='graphmend')"

#: One finding with a safe fix, in line 7, columns 9 to 31.
MODEL = """\
import torch
from torch import nn


class Head(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("shape", x.shape)
        return torch.relu(x)
"""

#: What fixing makes of it.
FIXED = """\
import torch
from graphmend_lint.runtime import deferred
from torch import nn


class Head(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        deferred(print)("shape", x.shape)
        return torch.relu(x)
"""

#: One finding without a fix, in line 7: the text is made of tensor data.
DECLINED = MODEL.replace("x.shape", "x.sum().item() * 2")

CLEAN = "def double(x: int) -> int:\n    return 2 * x\n"


def compiled(*body: str) -> str:
    """A file with one compiled function; `body` starts in line 9."""
    lines = ["import logging", "import warnings", "", "import torch", "", "logger = logging.getLogger(__name__)"]
    lines += ["@torch.compile", "def step(x: torch.Tensor, flag: bool) -> torch.Tensor:"]
    return "\n".join([*lines, *(f"    {line}" for line in body), "    return x", ""])


@dataclass(frozen=True)
class Outcome:
    """What a run of the command gave."""

    code: int
    out: str
    err: str
    raw: bytes

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def errors(self) -> list[str]:
        return self.err.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Project:
    """A folder with a pyproject.toml, and a cache folder beside it. Paths are relative to the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.cache = folder / "cache"
        self.folder.mkdir()
        self.configure()

    def configure(self, table: str = "", name: str = "pyproject.toml") -> Path:
        """Write `[tool.graphmend]` with these lines."""
        return self.write(name, f"[tool.graphmend]\n{table}\n")

    def write(self, name: str, content: str | bytes = MODEL) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, name: str) -> str:
        return self.raw(name).decode()

    def raw(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def files(self) -> dict[str, bytes]:
        """Everything in the folder."""
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}

    def run(self, *args: str | Path, stdin: str | bytes = b"") -> Outcome:
        """Run the command in this process, as if it had just started."""
        for remembered in (
            config._settings_of_folder,
            discovery.project_root,
            discovery.index_root,
            index.kept,
        ):
            remembered.cache_clear()
        result = _runner().invoke(cli.main, [str(arg) for arg in args], input=stdin, prog_name="graphmend")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        raw = result.stdout_bytes
        return Outcome(result.exit_code, raw.decode(errors="replace"), result.stderr, raw)

    def process(self, *args: str | Path, stdin: bytes = b"", **options: Any) -> Outcome:
        """Run the command as users do, in a process of its own."""
        return python(["-c", COMMAND, *map(str, args)], self.folder, stdin, **options)

    def findings(self, *args: str | Path) -> list[dict[str, Any]]:
        """What `lint --output-format json` lists."""
        outcome = self.run("lint", "--output-format", "json", *args)
        assert outcome.code in (0, 1), outcome.err
        found: list[dict[str, Any]] = outcome.json
        return found

    def lines_of(self, *args: str | Path) -> list[int]:
        """The lines of the findings."""
        return [finding["line"] for finding in self.findings(*args)]


def python(
    args: Sequence[str],
    folder: Path,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    timeout: float = 60,
    **options: Any,
) -> Outcome:
    """Run the interpreter with the project's source on its path."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "rules")])
    done = subprocess.run(
        [sys.executable, *args],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **(env or {})},
        timeout=timeout,
        **options,
    )
    return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(), done.stdout)


def _runner() -> CliRunner:
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:  # click 8.2 and newer never mix
        return CliRunner()
