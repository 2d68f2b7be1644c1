"""The script for a GPU runs from end to end without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as gpu

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_it_runs_on_a_cpu(tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--small", "--backend", "aot_eager"]
    options = ["--subjects", "guarded", "--modes", "default", "--output", str(output)]

    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)

    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text(encoding="utf-8"))
    original, fixed = found["results"]
    assert (original["version"], fixed["version"]) == ("original", "fixed")
    assert fixed["breaks"] < original["breaks"]
    assert fixed["refused"] == {"raised": "ValueError: 64 values are not numbers", "afterwards": "works"}
    assert found["environment"]["card"]
    assert "| guarded | default | fixed | 0 |" in done.stdout


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu, "_NEEDED", {"torch": "torch>=2.11", "no_such_package": "transformers==4.52.4"})

    assert gpu.main([]) == 2
    assert capsys.readouterr().err == "benchmarks.gpu needs transformers==4.52.4: pip install '.[test]'\n"


def test_arms_that_time_does_not_allow_are_left_out(tmp_path: Path) -> None:
    job = {"subject": "t5-small", "mode": "default", "version": "original"}

    result = gpu._arm(job, tmp_path / "arm", deadline=0.0)

    assert result == {**job, "error": "no time left"}
    assert "no time left" in gpu.table([result])
