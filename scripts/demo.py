"""Shows the tool on a real model: findings in T5's source, the fix as a diff, and the proof that it is right.

    python scripts/demo.py

Nothing is written: transformers stays as it is installed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULE = Path("transformers", "models", "t5", "modeling_t5.py")
GRAPHMEND = [
    sys.executable,
    "-c",
    "import sys; from graphmend_lint.cli import main; main(prog_name='graphmend')",
]


def step(title: str, arguments: list[str], folder: Path) -> int:
    """Says what is done and how one would type it, does it, and gives the exit code."""
    print(f"\n== {title}\n$ graphmend {' '.join(arguments)}\n", flush=True)
    return subprocess.run([*GRAPHMEND, *arguments], cwd=folder, check=False).returncode


def main() -> int:
    """0 if T5 had findings and the fix was proven."""
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        print("transformers is not installed: pip install -e '.[test]'", file=sys.stderr)
        return 2
    packages = Path(spec.origin).parents[1]
    found = step("What breaks the graph", ["lint", str(MODULE)], packages)
    step("The fix", ["fix", "--diff", str(MODULE)], packages)
    proven = step("The proof", ["verify", "benchmarks.models:t5"], ROOT)
    return 0 if (found, proven) == (1, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
