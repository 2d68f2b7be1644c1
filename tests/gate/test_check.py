"""`graphmend check` from the first run on: what it says, what it writes, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.project import CLEAN, DECLINED, FIXED, MODEL, Project

BASELINE = "graphmend-baseline.json"
LINE = '        print("shape", x.shape)\n'
#: The same finding a second time.
TWICE = MODEL.replace(LINE, LINE * 2)


@pytest.fixture
def known(project: Project) -> Project:
    """A project with one finding, in its baseline."""
    project.write("model.py")
    assert project.run("check", "--update-baseline").code == 0
    return project


def test_first_run_says_how_to_make_a_baseline(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("check")
    assert outcome.code == 1
    assert outcome.lines[0].startswith("model.py:7:9: GM201 [*] ")
    assert outcome.lines[1] == "Found 1 new graph break. 1 fixable with `graphmend fix`."
    assert "run `graphmend check --update-baseline` and commit graphmend-baseline.json" in outcome.lines[2]
    assert BASELINE not in project.files()


def test_clean_project_needs_no_baseline(project: Project) -> None:
    project.write("clean.py", CLEAN)
    outcome = project.run("check")
    assert (outcome.code, outcome.lines) == (0, ["No new graph breaks in 1 file."])


def test_update_writes_what_is_there(project: Project) -> None:
    project.write("src/model.py")
    project.write("other.py", DECLINED)
    outcome = project.run("check", "--update-baseline")
    assert outcome.code == 0
    assert outcome.lines == [f"{BASELINE}: 2 known findings (2 added, 0 dropped)."]
    written = json.loads(project.read(BASELINE))
    assert (written["tool"], written["version"]) == ("graphmend", 1)
    assert [{**entry, "content": ""} for entry in written["findings"]] == [
        {
            "path": "other.py",
            "scope": "Head.forward",
            "code": "GM201",
            "content": "",
            "count": 1,
            "text": 'print("shape", x.sum().item() * 2)',
        },
        {
            "path": "src/model.py",
            "scope": "Head.forward",
            "code": "GM201",
            "content": "",
            "count": 1,
            "text": 'print("shape", x.shape)',
        },
    ]
    assert str(project.folder) not in project.read(BASELINE)


def test_the_file_is_one_line_for_each_entry_and_always_the_same(project: Project) -> None:
    project.write("b.py", TWICE)
    project.write("a.py")
    project.run("check", "--update-baseline")
    first = project.read(BASELINE)
    assert len(first.splitlines()) == 4 + 2 + 2
    assert [json.loads(line.strip().rstrip(","))["count"] for line in first.splitlines()[4:6]] == [1, 2]
    stamp = (project.folder / BASELINE).stat().st_mtime_ns
    project.run("check", "--update-baseline", "-j", "2", "--no-cache")
    assert project.read(BASELINE) == first
    assert (project.folder / BASELINE).stat().st_mtime_ns == stamp


def test_what_is_known_does_not_fail(known: Project) -> None:
    outcome = known.run("check")
    assert (outcome.code, outcome.lines) == (0, ["No new graph breaks in 1 file (1 known)."])


def test_only_what_is_new_is_listed(known: Project) -> None:
    known.write("other.py", DECLINED)
    outcome = known.run("check")
    assert outcome.code == 1
    assert [line.partition(" ")[0] for line in outcome.lines] == ["other.py:7:9:", "Found"]
    assert outcome.lines[1] == "Found 1 new graph break (1 known)."


def test_fixed_entries_are_counted_and_dropped(known: Project) -> None:
    known.write("model.py", FIXED)
    outcome = known.run("check")
    assert outcome.code == 0
    assert outcome.lines == [
        "No new graph breaks in 1 file.",
        "1 entry of the baseline is fixed (model.py); run --update-baseline.",
    ]
    assert known.run("check", "--update-baseline").lines == [f"{BASELINE}: 0 known findings (0 added, 1 dropped)."]
    assert known.run("check").lines == ["No new graph breaks in 1 file."]
    known.write("model.py")
    assert known.run("check").code == 1, "what was fixed once must not come back"


def test_update_is_not_advised_where_it_would_take_in_what_is_new(known: Project) -> None:
    known.write("model.py", FIXED)
    known.write("other.py", DECLINED)
    outcome = known.run("check")
    assert outcome.code == 1
    assert outcome.lines[-1].endswith("is fixed (model.py); --prune-baseline drops it and adds nothing.")


def test_prune_drops_and_adds_nothing(project: Project) -> None:
    project.write("a.py")
    project.write("b.py", TWICE)
    project.run("check", "--update-baseline")
    project.write("a.py", FIXED)
    project.write("b.py")
    project.write("c.py", DECLINED)
    outcome = project.run("check", "--prune-baseline")
    assert outcome.code == 1, "what is new is still new"
    assert outcome.errors == [f"{BASELINE}: 1 known finding (0 added, 2 dropped)."]
    (entry,) = json.loads(project.read(BASELINE))["findings"]
    assert (entry["path"], entry["count"]) == ("b.py", 1)
    project.write("c.py", CLEAN)
    assert project.run("check", "--prune-baseline").code == 0


def test_prune_without_a_baseline(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("check", "--prune-baseline")
    assert (outcome.code, outcome.errors) == (2, [f"error: {BASELINE}: no such file; --update-baseline makes one"])


def test_one_more_of_the_same_in_a_function_is_new(known: Project) -> None:
    known.write("model.py", TWICE)
    outcome = known.run("check")
    assert outcome.code == 1
    assert outcome.lines[0].startswith("model.py:8:9: GM201 ")
    assert outcome.lines[0].endswith("(`Head.forward` may have 1 like it, by the baseline)")
    assert outcome.lines[1].startswith("Found 1 new graph break (1 known).")


def test_fewer_of_the_same_are_fixed(project: Project) -> None:
    project.write("model.py", MODEL.replace(LINE, LINE * 3))
    project.run("check", "--update-baseline")
    project.write("model.py")
    outcome = project.run("check")
    assert outcome.code == 0
    assert outcome.lines[1] == "2 entries of the baseline are fixed (model.py); run --update-baseline."


def test_another_finding_in_a_known_function_is_new(known: Project) -> None:
    known.write("model.py", MODEL.replace("x.shape", "x.dtype"))
    outcome = known.run("check")
    assert outcome.code == 1
    assert outcome.lines[1] == "Found 1 new graph break. 1 fixable with `graphmend fix`."
    assert outcome.lines[2].startswith("1 entry of the baseline is fixed (model.py)")


def test_many_files_with_fixed_entries_are_counted(project: Project) -> None:
    for name in "abcde":
        project.write(f"{name}.py")
    project.run("check", "--update-baseline")
    for name in "abcde":
        project.write(f"{name}.py", FIXED)
    outcome = project.run("check")
    assert outcome.lines[1] == (
        "5 entries of the baseline are fixed (a.py, b.py, c.py and 2 more files); run --update-baseline."
    )


def test_exit_zero(project: Project) -> None:
    project.write("model.py")
    assert project.run("check", "--exit-zero").code == 0


def test_quiet(known: Project) -> None:
    assert known.run("check", "-q").out == ""
    assert known.run("check", "-q", "--update-baseline").out == ""
    known.write("other.py", DECLINED)
    assert len(known.run("check", "-q").lines) == 1


def test_a_file_that_cannot_be_read_is_an_error(known: Project) -> None:
    known.write("broken.py", "def f(:\n")
    outcome = known.run("check")
    assert outcome.code == 2
    assert outcome.errors == ["broken.py: error: line 1: invalid syntax"]
    assert outcome.lines == ["1 file could not be linted. No new graph breaks in 1 file (1 known)."]


def test_nothing_is_written_where_something_could_not_be_read(known: Project) -> None:
    """The entries of such a file would be lost."""
    before = known.read(BASELINE)
    known.write("model.py", MODEL + "def f(:\n")
    known.write("other.py", DECLINED)
    for option in ("--update-baseline", "--prune-baseline"):
        outcome = known.run("check", option)
        assert outcome.code == 2
        assert outcome.errors[-1] == f"error: {BASELINE}: not written, since not everything could be linted"
        assert known.read(BASELINE) == before
    assert known.run("check").lines[-1].startswith("1 file could not be linted. Found 1 new graph break")


def test_machine_formats_have_the_new_findings_only(known: Project) -> None:
    known.write("other.py", DECLINED)
    outcome = known.run("check", "--output-format", "json")
    assert outcome.code == 1
    assert [(found["path"], found["line"]) for found in outcome.json] == [(str(known.folder / "other.py"), 7)]
    sarif = known.run("check", "--output-format", "sarif", "-o", "new.sarif")
    assert sarif.code == 1
    (run,) = json.loads(known.read("new.sarif"))["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["GM201"]
    assert known.run("check", "--output-format", "github").lines[0].startswith("::warning file=other.py,line=7,")


def test_statistics(known: Project) -> None:
    known.write("other.py", DECLINED)
    outcome = known.run("check", "--statistics", "-q")
    assert [line.split() for line in outcome.lines] == [["1", "GM201", "print-call", "definite", "argument-reads-data"]]
    assert known.run("check", "--statistics", "--output-format", "json", "-q").json[0]["count"] == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--update-baseline", "--prune-baseline"], "--prune-baseline"),
        (["--update-baseline", "--diff-base", "HEAD"], "--diff-base looks at changed lines only"),
        (["--update-baseline", "-"], "`-` is no file"),
        (["--diff-base", "HEAD", "-"], "`-` is no file"),
        (["--statistics", "--output-format", "sarif"], "--statistics goes with"),
        (["--measure"], "no [[tool.graphmend.verify]] entry in pyproject.toml has `max-breaks`"),
        (["--select", "GM999"], "unknown rule `GM999`"),
        (["missing.py"], "no such file or directory"),
        (["--baseline", "missing.json"], "missing.json: no such file; --update-baseline makes one"),
    ],
)
def test_wrong_use_is_an_error(known: Project, args: list[str], says: str) -> None:
    before = known.files()
    outcome = known.run("check", *args)
    assert outcome.code == 2
    assert says in outcome.err
    assert "Traceback" not in outcome.err
    assert known.files() == before


def test_stdin_counts_as_the_file_that_it_is_named_after(known: Project) -> None:
    assert known.run("check", "-", "--stdin-filename", "model.py", stdin=MODEL).code == 0
    outcome = known.run("check", "-", "--stdin-filename", "model.py", stdin=TWICE)
    assert outcome.code == 1
    assert outcome.lines[0].startswith("model.py:8:9: GM201")
    assert known.run("check", "-", stdin=MODEL).code == 1, "a text without a name is in no baseline"


def test_the_command_as_users_run_it(known: Project) -> None:
    assert known.process("check").code == 0
    known.write("other.py", DECLINED)
    outcome = known.process("check")
    assert (outcome.code, outcome.lines[0].partition(" ")[0]) == (1, "other.py:7:9:")


def test_checking_imports_no_torch_and_runs_nothing(known: Project) -> None:
    known.write("bomb.py", "raise SystemExit('was run')\n")
    code = "import sys; from graphmend_lint.cli import main; main(['check'], standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], cwd=known.folder, capture_output=True, text=True, check=False
    )
    assert "No new graph breaks in 2 files (1 known)." in done.stdout
    assert "| torch" not in done.stderr
    assert "libcst" not in done.stderr


# -- where the baseline is ---------------------------------------------------------------------------------------------


def test_place_by_configuration(project: Project) -> None:
    project.configure('baseline = "ci/known.json"')
    project.write("src/model.py")
    (project.folder / "ci").mkdir()
    assert project.run("check", "--update-baseline").code == 0
    (entry,) = json.loads(project.read("ci/known.json"))["findings"]
    assert entry["path"] == "../src/model.py"
    assert project.run("check").code == 0


def test_place_by_option_outweighs_it(known: Project) -> None:
    known.write("other.py", DECLINED)
    assert known.run("check", "--baseline", "mine.json", "--update-baseline").code == 0
    assert known.run("check", "--baseline", "mine.json").code == 0
    assert known.run("check").code == 1


def test_a_folder_that_is_missing(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("check", "--baseline", "no/such.json", "--update-baseline")
    assert outcome.code == 2
    assert outcome.errors == ["error: no/such.json: not written: no such file or directory"]


def test_the_same_baseline_from_everywhere(known: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    known.write("deep/er/model.py", DECLINED)
    known.run("check", "--update-baseline")
    monkeypatch.chdir(known.folder / "deep" / "er")
    assert known.run("check").lines == ["No new graph breaks in 1 file (1 known)."]
    assert known.run("check", "../..").lines == ["No new graph breaks in 2 files (2 known)."]
    monkeypatch.chdir("/")
    assert known.run("check", known.folder).lines == ["No new graph breaks in 2 files (2 known)."]
    assert known.run("check", known.folder / "deep/er/model.py", known.folder / "model.py").code == 0


def test_a_nested_project_does_not_move_it(known: Project) -> None:
    """A hook is given the files of the moment: whichever they are, the run has one baseline."""
    known.configure(name="packages/a/pyproject.toml")
    known.write("packages/a/model.py")
    known.run("check", "--update-baseline")
    assert "packages/a/" + BASELINE not in known.files()
    assert known.run("check", "packages/a/model.py").code == 0


def test_without_any_configuration(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.folder / "pyproject.toml").unlink()
    project.write("setup.cfg", "")
    project.write("src/model.py")
    monkeypatch.chdir(project.folder / "src")
    assert project.run("check", "--update-baseline").code == 0
    assert BASELINE in project.files()
    assert project.run("check", "--isolated").code == 0
