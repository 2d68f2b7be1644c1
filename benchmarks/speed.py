"""Time and memory of `graphmend lint` on the whole transformers package, with ruff and Fixit in the same run.

    python -m benchmarks.speed [--json]

Every command runs in processes of its own. Wall is what a user waits; CPU is that of all its processes;
memory is the highest sum of their resident sizes (a shared page counts in each). Cores that other work uses
too lengthen wall more than CPU: compare ratios.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

GRAPHMEND = [
    sys.executable,
    "-c",
    "import sys; from graphmend_lint.cli import main; main(prog_name='graphmend')",
]
FIXIT = [sys.executable, "-m", "fixit"]
PARSE = """
import ast, pathlib, sys, warnings
warnings.simplefilter("ignore")
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    ast.parse(path.read_bytes())
"""
# Linters exit with 1 where they find something.
FINE = (0, 1)
SAMPLE_SIZE, SAMPLE_SEED = 40, 0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """What one command took, on `files` files of together `lines` lines."""

    name: str
    files: int
    lines: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    exit_code: int
    error: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.error)


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of Python files."""

    root: Path
    files: int
    lines: int

    @classmethod
    def at(cls, root: Path) -> Tree:
        found = list(root.rglob("*.py"))
        return cls(root, len(found), sum(path.read_bytes().count(b"\n") for path in found))


class Memory(threading.Thread):
    """Follows the resident memory of all processes of one session; `peak` is the highest sum, in bytes."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self.session = session
        self.peak = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            self.peak = max(self.peak, resident(self.session))

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.peak


def resident(session: int) -> int:
    """Bytes resident in the processes of a session; 0 where the system has no /proc."""
    pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        # Counted from the state, which follows the command: 3 is the session, 21 the resident set in pages.
        if int(fields[3]) == session:
            pages += int(fields[21])
    return pages * resource.getpagesize()


def measure(name: str, command: list[str], tree: Tree, folder: Path) -> Row:
    """Runs the command in a session of its own, with `folder` as the current one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        memory = Memory(process.pid)
        memory.start()
        code = process.wait()
        wall = time.perf_counter() - start
        peak = memory.stop()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Row(name, tree.files, tree.lines, wall, cpu, peak / 2**20, code, error(code, said))


def error(code: int, said: str) -> str:
    """Why a run is no measurement, "" if it is one. An uncaught exception too ends Python with 1."""
    if code in FINE and "Traceback (most recent call last)" not in said:
        return ""
    return (said.splitlines() or ["no output"])[-1]


def copy_sample(root: Path, target: Path) -> Tree:
    """A fixed random sample of the package, in a tree of the same shape."""
    files = sorted(root.rglob("*.py"))
    for path in random.Random(SAMPLE_SEED).sample(files, SAMPLE_SIZE):
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return Tree.at(target)


def ruff() -> str:
    """The ruff of this environment."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.exists() else "ruff"


def whole_tree(tree: Tree, folder: Path) -> list[Row]:
    """All of the package. The first row also brings the files into the system's cache."""
    root = str(tree.root)
    lint = [*GRAPHMEND, "lint", "--cache-dir", str(folder / "cache"), root]
    return [
        measure("ast.parse", [sys.executable, "-c", PARSE, root], tree, folder),
        measure(
            "ruff check --select ALL",
            [ruff(), "check", "--isolated", "--select", "ALL", "--no-cache", "--quiet", root],
            tree,
            folder,
        ),
        measure("graphmend lint, cold", lint, tree, folder),
        measure("graphmend lint, unchanged", lint, tree, folder),
    ]


def sampled(tree: Tree, folder: Path) -> list[Row]:
    """The sample, linted without a cache."""
    root = str(tree.root)
    return [
        measure("fixit lint, built-in rules", [*FIXIT, "lint", root], tree, folder),
        measure("graphmend lint", [*GRAPHMEND, "lint", "--no-cache", root], tree, folder),
    ]


def table(rows: list[Row], reference: Row) -> str:
    """The rows as a Markdown table, with time as a multiple of the reference's."""
    versus = reference.name.split()[0]
    lines = [
        f"| command | wall s | CPU s | peak MB | wall / {versus} | CPU / {versus} |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        if row.failed:
            lines.append(f"| {row.name} | failed ({row.exit_code}): {row.error} | | | | |")
            continue
        ratios = f"{row.wall_s / reference.wall_s:.2f} | {row.cpu_s / reference.cpu_s:.2f}"
        lines.append(f"| {row.name} | {row.wall_s:.1f} | {row.cpu_s:.1f} | {row.peak_mb:.0f} | {ratios} |")
    return "\n".join(lines)


def package_folder(name: str) -> Path:
    """Where an installed package lies; it is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{name} is not installed: pip install 'graphmend-lint[test]'")
    return Path(spec.submodule_search_locations[0])


def environment() -> dict[str, str | int]:
    versions = {name: importlib.metadata.version(name) for name in ("transformers", "ruff", "fixit")}
    return {"python": platform.python_version(), "cores": os.cpu_count() or 1, **versions}


def report(whole: list[Row], sample: list[Row]) -> str:
    here = ", ".join(f"{name} {value}" for name, value in environment().items())
    return (
        f"{here}\n\n"
        f"Whole package: {whole[0].files:,} files, {whole[0].lines:,} lines\n\n"
        f"{table(whole, whole[1])}\n\n"
        f"Sample: {sample[0].files} files, {sample[0].lines:,} lines\n\n"
        f"{table(sample, sample[0])}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Prints the tables; 1 where a command could not run."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = options.parse_args(arguments).json
    package = package_folder("transformers")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = whole_tree(Tree.at(package), folder)
        sample = sampled(copy_sample(package, folder / "sample"), folder)
    if as_json:
        rows = {"whole": [asdict(row) for row in whole], "sample": [asdict(row) for row in sample]}
        print(json.dumps({"environment": environment(), **rows}, indent=2))
    else:
        print(report(whole, sample))
    return int(any(row.failed for row in (*whole, *sample)))


if __name__ == "__main__":
    sys.exit(main())
