"""Original and fixed models on one GPU, in ten minutes at most: `python -m benchmarks.gpu`.

For each model and each mode of torch.compile: breaks, cold start from empty caches, steady state, memory, messages, and
how often CUDA graphs are launched; the outputs of both versions are compared, and the exception of a guard is provoked.
The unsafe fixes are made too. Results go to a JSON file and, as a table, to the standard output.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_NEEDED = {
    "torch": "torch>=2.11",
    "transformers": "transformers==4.52.4",
    "libcst": "libcst>=1.8",
    "click": "click>=8.1",
}
_HEADERS = (
    "subject", "mode", "version", "breaks", "cold s", "steady ms", "eager ms", "MB", "graph launches",
    "kernel launches", "messages", "after bad input",
)  # fmt: skip
MODES = ("default", "reduce-overhead")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 1 if an arm failed or the versions disagree, 2 if something is missing."""
    if missing := [package for name, package in _NEEDED.items() if importlib.util.find_spec(name) is None]:
        sys.stderr.write(f"benchmarks.gpu needs {', '.join(missing)}: pip install '.[test]'\n")
        return 2
    given = _parser().parse_args(arguments)
    import torch

    if given.device.startswith("cuda") and not torch.cuda.is_available():
        sys.stderr.write("benchmarks.gpu: torch sees no GPU; --device cpu --small proves the script without one\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        results = list(_results(given, Path(folder), time.monotonic() + given.seconds))
    environment = _environment(given)
    record = {"environment": environment, "results": results}
    given.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    about = ", ".join(f"{name} {value}" for name, value in environment.items())
    sys.stdout.write(f"{about}\n\n{table(results)}\n")
    return int(any(result["error"] or result["differs"] for result in results))


def _parser() -> argparse.ArgumentParser:
    from benchmarks.gpu.subjects import SUBJECTS

    title = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=title)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="small models, to prove the script")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--subjects", type=lambda text: text.split(","), default=list(SUBJECTS), help="comma separated")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES), help="comma separated")
    parser.add_argument("--seconds", type=float, default=570.0, help="arms that this leaves no time for are left out")
    parser.add_argument("--output", type=Path, default=Path("gpu.json"))
    return parser


def _results(given: argparse.Namespace, folder: Path, deadline: float) -> Iterator[dict[str, Any]]:
    """Original and fixed of each subject in each mode."""
    from benchmarks.gpu.subjects import SUBJECTS

    overlays = {name: _overlay(SUBJECTS[name].modules, folder / name) for name in given.subjects}
    number = 0
    for name in given.subjects:
        for mode in given.modes:
            pair = []
            for version, overlay in (("original", None), ("fixed", str(overlays[name]))):
                number += 1
                home = folder / f"arm-{number}"
                job = {
                    "subject": name,
                    "mode": mode,
                    "version": version,
                    "device": given.device,
                    "small": given.small,
                    "backend": given.backend,
                    "overlay": overlay,
                    "result": str(home / "result.json"),
                    "outputs": str(home / "outputs.pt"),
                }
                pair.append({**_arm(job, home, deadline), "differs": None})
                sys.stderr.write(f"{name}, {mode}, {version}: {pair[-1]['error'] or 'done'}\n")
            if not any(result["error"] for result in pair):
                pair[1]["differs"] = _difference(folder / f"arm-{number - 1}", folder / f"arm-{number}", given.device)
            yield from pair


def _overlay(modules: Sequence[str], folder: Path) -> Path:
    """The fixed sources of the modules' files, and the list of them that an arm reads."""
    from graphmend_lint.verify.linter import LinterFixes

    files = [Path(file) for name in modules if (file := _file_of(name))]
    folder.mkdir()
    places = {}
    for number, (path, result) in enumerate(LinterFixes(unsafe_fixes=True)(files).items()):
        if result.changed:
            place = folder / f"{number}-{path.name}"
            place.write_bytes(result.source)
            places[str(path)] = str(place)
    manifest = folder / "overlay.json"
    manifest.write_text(json.dumps(places), encoding="utf-8")
    return manifest


def _file_of(module: str) -> str | None:
    """The file of a module; its packages are imported, itself it is not."""
    found = importlib.util.find_spec(module)
    return found.origin if found else None


def _arm(job: dict[str, Any], home: Path, deadline: float) -> dict[str, Any]:
    """Runs an arm in a process of its own, with caches of its own."""
    home.mkdir()
    about = {name: job[name] for name in ("subject", "mode", "version")}
    left = deadline - time.monotonic()
    if left <= 0:
        return {**about, "error": "no time left"}
    (home / "job.json").write_text(json.dumps(job), encoding="utf-8")
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"), "TRITON_CACHE_DIR": str(home / "triton")}
    command = [sys.executable, "-m", "benchmarks.gpu.arm", str(home / "job.json")]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | caches, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        return {**about, "error": f"not done within the {left:.0f} s that were left"}
    if done.returncode:
        return {**about, "error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return {**about, "error": None, **json.loads(Path(job["result"]).read_text(encoding="utf-8"))}


def _difference(original: Path, fixed: Path, device: str) -> str | None:
    """How the outputs of the versions differ: eager ones must be the same bit for bit, on a CPU and on a GPU."""
    import torch

    one, two = (torch.load(home / "outputs.pt", map_location=device) for home in (original, fixed))
    pairs = zip(one["eager"], two["eager"], strict=True)
    same = all(torch.equal(a, b) for first, second in pairs for a, b in zip(first, second, strict=True))
    return None if same else "eager outputs differ"


def _environment(given: argparse.Namespace) -> dict[str, str]:
    from importlib.metadata import version

    import torch

    on_gpu = given.device.startswith("cuda")
    card = torch.cuda.get_device_name(given.device) if on_gpu else platform.processor() or platform.machine()
    return {
        "date": date.today().isoformat(),
        "card": card,
        "cuda": str(torch.version.cuda),
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "python": platform.python_version(),
        "sizes": "small" if given.small else "full",
        "backend": given.backend,
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """The results in Markdown."""
    lines = [_HEADERS, ["---"] * len(_HEADERS), *map(_cells, results)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(result: dict[str, Any]) -> list[str]:
    about = [result["subject"], result["mode"], result["version"]]
    if result["error"]:
        return [*about, result["error"], *[""] * (len(_HEADERS) - 4)]
    launches = result["launches_per_pass"] or {}
    refused = result["refused"]
    return [
        *about,
        str(result["breaks"]),
        f"{result['cold_s']:.2f}",
        f"{result['steady_ms']['median']:.2f}",
        f"{result['eager_ms']['median']:.2f}",
        str(result["peak_mb"] or "-"),
        str(launches.get("cudaGraphLaunch", "-")),
        str(launches.get("cudaLaunchKernel", "-")),
        f"{result['messages_per_pass']:g}",
        f"{refused['raised']}; then {refused['afterwards']}" if refused else "",
    ]


if __name__ == "__main__":
    raise SystemExit(main())
