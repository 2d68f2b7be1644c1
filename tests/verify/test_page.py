"""The page of a verdict: all of it, escaped, in one file that asks for nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from graphmend_lint.verify.page import page
from graphmend_lint.verify.verdict import (
    Arm,
    Break,
    Capture,
    Cause,
    ChangedFile,
    Check,
    Predicate,
    Run,
    Timing,
    Verdict,
)

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DIFF = "--- original\n+++ fixed\n@@ -1,2 +1,2 @@\n x = '<b>'\n-if (x < 0).any():\n+alarm = when((x < 0).any())"
ENVIRONMENT = {
    "torch": "2.13.0",
    "device": "cpu",
    "backend": "inductor",
    "mode": None,
    "dtype": None,
    "train": False,
    "grad": True,
    "calls": 2,
}


def arm(file: Path, *lines: int, cold: float) -> Arm:
    run = Run(((),), (None,))
    sites = tuple(Break("GB0170", "Data-dependent branching", str(file), n, "f", "if x < y:", False) for n in lines)
    return Arm(
        run, run, Capture((len(lines) + 1,), sites, (None,)), Timing(cold, (0.002, 0.003, 0.004), (0.01,), 2**28)
    )


@pytest.fixture
def verdict(tmp_path: Path) -> Verdict:
    file = tmp_path / "model.py"
    file.write_text("a = 1\nb = '<script>alert(1)</script>'\nif x < y:\n    pass\n")
    return Verdict(
        f"{file}:build",
        "not proven",
        "both sides: <model.py:3> is wrong",
        (Check("eager values", True, "", "bit for bit"), Check("both sides", False, "1 of 2", "2 of 2", "a < b")),
        arm(file, 3, cold=2.0),
        arm(file, cold=0.5),
        (ChangedFile(str(file), 1, ("GM202",), DIFF),),
        ("a note with & and <i>",),
        ENVIRONMENT,
        (Predicate(str(file), 3, "x < y", (0, 2), (0, 3), "f was not called"),),
        (Cause(str(file), 3, "GM202", "a message"),),
    )


class _Reader(HTMLParser):
    """Collects the text, and checks that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onclick"}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_everything_and_asks_for_nothing(verdict: Verdict) -> None:
    made = page([verdict])
    reader = _Reader()
    reader.feed(made)
    assert reader.open == []
    for text in (
        "both sides: <model.py:3> is wrong",
        "b = '<script>alert(1)</script>'",
        "+alarm = when((x < 0).any())",
        "GB0170 Data-dependent branching",
        "a note with & and <i>",
        "true (f was not called)",
        "original 2 s",
        "fixed 500 ms",
        "Peak memory: original 256 MiB",
    ):
        assert text in reader.text, text
    assert not re.search(r"<script|https?://|url\(|@import", made)


def test_several_verdicts_are_one_page(verdict: Verdict) -> None:
    made = page([verdict, Verdict("other:build", "could not run", "no such file")])
    assert made.count("<section>") == 2
    assert "no such file" in made


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_browser_shows_it(verdict: Verdict, tmp_path: Path) -> None:
    assert BROWSER is not None
    place, picture = tmp_path / "report.html", tmp_path / "report.png"
    place.write_text(page([verdict]), encoding="utf-8")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")
    shot = [BROWSER, *flags, f"--screenshot={picture}", "--window-size=1100,1400", place.as_uri()]
    subprocess.run(shot, check=True, capture_output=True, timeout=120)
    assert picture.stat().st_size > 10_000
    dump = subprocess.run(
        [BROWSER, *flags, "--dump-dom", place.as_uri()], check=True, capture_output=True, text=True, timeout=120
    )
    assert dump.stdout.count('class="bar ') == 6
