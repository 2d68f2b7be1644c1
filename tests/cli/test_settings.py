"""What each key of the configuration does to findings and fixes."""

from __future__ import annotations

import pytest

from tests.cli.project import MODEL, Project, compiled

PLAIN = "import torch\n\ndef step(x: torch.Tensor) -> torch.Tensor:\n    print('x')\n    return x.relu()\n"


@pytest.mark.parametrize(
    ("version", "fix"),
    [("2.11", "safe"), ("2.13.1", "safe"), ("3.0", "safe"), ("2.10", "none"), ("2.9.1", "none"), ("1.13", "none")],
)
def test_target_torch(project: Project, version: str, fix: str) -> None:
    project.configure(f'target-torch = "{version}"')
    project.write("model.py")
    (finding,) = project.findings()
    assert finding["fix"] == fix
    if fix == "none":
        assert finding["decline"]["reason"] == "target-torch-too-old"
        assert project.run("fix").code == 1
        assert project.read("model.py") == MODEL


def test_runtime_module(project: Project) -> None:
    project.configure('runtime-module = "mypackage._graphmend"')
    project.write("model.py")
    assert project.run("fix").code == 0
    assert "from mypackage._graphmend import deferred\n" in project.read("model.py")
    assert "graphmend_lint" not in project.read("model.py")


@pytest.mark.parametrize("configured", ["package.steps:step", "package.steps:other"])
def test_entries(project: Project, configured: str) -> None:
    project.configure(f'entries = ["{configured}"]')
    project.write("package/__init__.py", "")
    project.write("package/steps.py", PLAIN)
    (finding,) = project.findings()
    named = configured.endswith(":step")
    assert finding["confidence"] == ("definite" if named else "likely")
    assert finding["entry"] == (f"`{configured}` in entries" if named else None)


def test_entries_reach_what_they_call(project: Project) -> None:
    project.configure('entries = ["caller:Runner.run"]')
    project.write("library.py", PLAIN)
    project.write(
        "caller.py",
        "import torch\nimport library\n\nclass Runner:\n    def run(self, x):\n        return library.step(x)\n",
    )
    (finding,) = project.findings()
    assert finding["confidence"] == "definite"


def test_entries_from_a_given_file_and_for_stdin(project: Project) -> None:
    project.configure('entries = ["model:step"]', "other.toml")
    project.write("model.py", PLAIN)
    args = ["--config", "other.toml", "--confidence", "definite", "-q"]
    assert len(project.run("lint", *args, "model.py").lines) == 1
    assert len(project.run("lint", *args, "-", "--stdin-filename", "model.py", stdin=PLAIN).lines) == 1
    assert project.run("lint", "--confidence", "definite", "model.py").code == 0


def test_confidence(project: Project) -> None:
    project.write("likely.py", PLAIN)
    project.write("model.py")
    assert [f["confidence"] for f in project.findings()] == ["likely", "definite"]
    assert [f["confidence"] for f in project.findings("--confidence", "definite")] == ["definite"]
    project.configure('confidence = "definite"')
    assert [f["confidence"] for f in project.findings()] == ["definite"]
    assert len(project.findings("--confidence", "likely")) == 2


def test_a_likely_finding_says_so(project: Project) -> None:
    project.write("likely.py", PLAIN)
    assert project.run("lint").lines[0].endswith(" (likely: no known entry reaches this function)")


def test_fix_leaves_findings_of_too_low_a_confidence(project: Project) -> None:
    project.write("likely.py", PLAIN)
    assert project.run("fix", "--confidence", "definite").lines == ["Fixed 0 in 0 files, 0 left."]
    assert project.read("likely.py") == PLAIN
    assert project.run("fix").lines == ["Fixed 1 in 1 files, 0 left."]


def test_guard_without_an_import_of_torch(project: Project) -> None:
    project.configure('defer-style = "guard"')
    source = compiled('print("x")').replace("import torch\n", "import torch as th\n").replace("torch.", "th.")
    project.write("model.py", source)
    assert project.run("fix", "--unsafe-fixes").code == 0
    assert "    if not th.compiler.is_compiling():\n        print(" in project.read("model.py")


def test_nested_projects_have_their_own(project: Project) -> None:
    project.configure('ignore = ["GM201"]')
    project.configure('runtime-module = "inner.runtime"', "inner/pyproject.toml")
    project.write("inner/model.py")
    project.write("plain/pyproject.toml", "[project]\nname = 'plain'\n")
    project.write("plain/model.py")
    project.write("model.py")
    outcome = project.run("fix")
    assert outcome.lines == ["Fixed 1 in 1 files, 0 left."]
    assert "from inner.runtime import deferred" in project.read("inner/model.py")
    assert project.read("model.py") == project.read("plain/model.py") == MODEL


def test_given_file_is_for_all(project: Project) -> None:
    project.configure("select = 3", "inner/pyproject.toml")
    project.write("inner/model.py")
    project.configure('ignore = ["GM201"]', "other.toml")
    assert project.run("lint", "--config", "other.toml", "inner/model.py").code == 0


def test_isolated_reads_no_file(project: Project) -> None:
    project.write("model.py")
    project.write("pyproject.toml", "this is not TOML")
    project.write("inner/pyproject.toml", "[tool.graphmend]\nno-such-key = 1\n")
    project.write("inner/model.py")
    assert project.run("lint").code == 2
    outcome = project.run("lint", "--isolated")
    assert outcome.code == 1
    assert len(outcome.lines) == 3
    assert project.run("lint", "--isolated", "-", "--stdin-filename", "x.py", stdin=MODEL).code == 1
    assert project.run("fix", "--isolated").code == 0
