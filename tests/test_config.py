"""`[tool.graphmend]`: where it is found, what its keys may hold, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_lint import config
from graphmend_lint.config import ConfigError, Settings, load_file, load_settings
from tests.cli.project import Project

EVERY_KEY = """\
[tool.graphmend]
select = ["GM2"]
ignore = ["GM203"]
exclude = ["generated/", "*_pb2.py"]
unsafe-fixes = true
target-torch = "2.13"
runtime-module = "package._runtime"
entries = ["package.module:function"]
confidence = "definite"
defer-style = "guard"
baseline = "ci/known.json"

[tool.graphmend.per-file-ignores]
"tests/*" = ["GM201"]

[[tool.graphmend.verify]]
target = "module:build"
backend = "inductor"
"""


@pytest.fixture(autouse=True)
def _fresh() -> None:
    config._settings_of_folder.cache_clear()


def test_every_key(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(EVERY_KEY)
    expected = Settings(
        root=tmp_path,
        source=path,
        select=("GM2",),
        ignore=("GM203",),
        per_file_ignores=(("tests/*", ("GM201",)),),
        exclude=("generated/", "*_pb2.py"),
        unsafe_fixes=True,
        target_torch="2.13",
        runtime_module="package._runtime",
        entries=("package.module:function",),
        confidence="definite",
        defer_style="guard",
        baseline="ci/known.json",
        verify=({"target": "module:build", "backend": "inductor"},),
    )
    assert load_settings(tmp_path / "model.py") == load_file(path) == expected
    assert {key.attribute for key in config.KEYS} == set(Settings.__dataclass_fields__) - {"root", "source"}


def test_defaults_are_those_that_the_docs_say(tmp_path: Path) -> None:
    shown = {key.name: key.default for key in config.KEYS}
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.graphmend]\n" + "\n".join(f"{name} = {value}" for name, value in shown.items()))
    parsed = load_file(path)
    for key in config.KEYS:
        assert getattr(parsed, key.attribute) == getattr(Settings(), key.attribute), key.name


# --- which file


def test_nearest_table(project: Project) -> None:
    outer = project.configure()
    inner = project.configure(name="a/b/pyproject.toml")
    project.write("a/c/pyproject.toml", "[project]\nname = 'c'\n")
    for name, source in [("a/b/d/model.py", inner), ("a/c/model.py", outer), ("a/model.py", outer), ("a/b", inner)]:
        assert load_settings(project.folder / name).source == source


def test_relative_paths(project: Project) -> None:
    source = project.configure()
    assert load_settings(Path("model.py")).source == source
    assert load_settings(Path()).source == source


def test_no_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert config.read_pyproject(tmp_path / "pyproject.toml") is None


# --- what is wrong with it


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("select = 1", "select must be a list of strings"),
        ('select = "GM2"', "select must be a list of strings"),
        ("ignore = [1]", "ignore must be a list of strings"),
        ('exclude = {a = "b"}', "exclude must be a list of strings"),
        ('entries = "a:b"', "entries must be a list of strings"),
        ("entries = [['a']]", "entries must be a list of strings"),
        ('unsafe-fixes = "yes"', "unsafe-fixes must be true or false"),
        ("unsafe-fixes = 1", "unsafe-fixes must be true or false"),
        ("target-torch = 2.11", 'target-torch must be a version such as "2.11"'),
        ('target-torch = "2"', 'target-torch must be a version such as "2.11"'),
        ('target-torch = ">=2.11"', 'target-torch must be a version such as "2.11"'),
        ("runtime-module = []", "runtime-module must be a dotted module name"),
        ('runtime-module = "a/b.py"', "runtime-module must be a dotted module name"),
        ('runtime-module = ".relative"', "runtime-module must be a dotted module name"),
        ('confidence = "sure"', 'confidence must be one of "definite", "likely"'),
        ("confidence = true", 'confidence must be one of "definite", "likely"'),
        ("confidence = []", 'confidence must be one of "definite", "likely"'),
        ('defer-style = "drop"', 'defer-style must be one of "runtime", "guard"'),
        ("report-unused-suppressions = 1", "report-unused-suppressions must be true or false"),
        ('trap-style = "late"', 'trap-style must be one of "exact", "async"'),
        ("baseline = 1", "baseline must be the path of a file"),
        ('per-file-ignores = ["GM201"]', "per-file-ignores must be a table of patterns and lists of rules"),
        ('per-file-ignores = {"a" = "GM201"}', "per-file-ignores must be a table of patterns and lists of rules"),
        ("verify = {}", "verify must be an array of tables: [[tool.graphmend.verify]]"),
        ('verify = ["a:b"]', "verify must be an array of tables: [[tool.graphmend.verify]]"),
        ("verify = [{}]", 'verify must be tables with a `target` ("module:callable")'),
        ("verify = [{target = 1}]", 'verify must be tables with a `target` ("module:callable")'),
    ],
)
def test_wrong_type(project: Project, line: str, says: str) -> None:
    source = project.configure(line)
    with pytest.raises(ConfigError) as caught:
        load_settings(project.folder)
    text = str(caught.value)
    assert text.startswith(f"{source}: [tool.graphmend] {says}")
    assert "\n" not in text


def test_every_key_has_a_wrong_type_in_this_file() -> None:
    marks = [mark for mark in test_wrong_type.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    tested = {line.partition(" ")[0] for line, _ in marks[0].args[1]}
    assert tested == {key.name for key in config.KEYS}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("slect", ', did you mean "select"?'),
        ("unsafe_fixes", ', did you mean "unsafe-fixes"?'),
        ("target-torsch", ', did you mean "target-torch"?'),
        ("quux", ""),
    ],
)
def test_unknown_key(project: Project, name: str, hint: str) -> None:
    source = project.configure(f"{name} = 1")
    with pytest.raises(ConfigError) as caught:
        load_settings(project.folder)
    assert str(caught.value) == f'{source}: [tool.graphmend] has no key "{name}"{hint}'


@pytest.mark.parametrize(
    "content",
    [b"[tool.graphmend\n", b"[tool.graphmend]\nselect = [\n", b"a = 1\na = 2\n", b"\xff\xfe", b"x = '\x00'\n"],
)
def test_broken_toml(project: Project, content: bytes) -> None:
    source = project.write("pyproject.toml", content)
    with pytest.raises(ConfigError) as caught:
        load_settings(project.folder)
    assert str(caught.value).startswith(f"{source}: ")
    assert "\n" not in str(caught.value)


def test_a_table_is_expected(project: Project) -> None:
    project.write("pyproject.toml", "[tool]\ngraphmend = 1\n")
    with pytest.raises(ConfigError, match=r"\[tool.graphmend\] must be a table"):
        load_settings(project.folder)


@pytest.mark.parametrize("args", [["lint"], ["fix"], ["fix", "--diff"], ["lint", "-"], ["lint", "--show-files"]])
def test_errors_end_the_run(project: Project, args: list[str]) -> None:
    project.write("model.py")
    source = project.configure("slect = []")
    before = project.files()
    outcome = project.run(*args)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors == [f'error: {source}: [tool.graphmend] has no key "slect", did you mean "select"?']
    assert project.files() == before


def test_errors_of_a_nested_project_end_the_run(project: Project) -> None:
    project.write("model.py")
    project.write("inner/model.py")
    source = project.configure("confidence = 1", "inner/pyproject.toml")
    outcome = project.run("lint")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors[0].startswith(f"error: {source}: [tool.graphmend] confidence must be one of")


# --- a file that is given


def test_given_file(project: Project) -> None:
    project.configure("no-such-key = 1")
    project.configure('ignore = ["GM201"]', "other.toml")
    project.write("model.py")
    assert project.run("lint", "--config", "other.toml").code == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "[Errno 2] No such file or directory: 'other.toml'"),
        ("[tool.other]\n", "no [tool.graphmend] table"),
        ("not TOML", "Expected '=' after a key"),
    ],
)
def test_given_file_that_cannot_be_used(project: Project, content: str | None, says: str) -> None:
    if content is not None:
        project.write("other.toml", content)
    for command in ("lint", "fix"):
        outcome = project.run(command, "--config", "other.toml")
        assert (outcome.code, outcome.out) == (2, "")
        (line,) = outcome.errors
        assert line.startswith(f"error: other.toml: {says}")


# --- patterns


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("model.py", "a/model.py", True),
        ("/model.py", "a/model.py", False),
        ("a/", "a/b/model.py", True),
        ("a/*.py", "a/b/model.py", False),
        ("a/**/*.py", "a/b/model.py", True),
        ("*_pb2.py", "x/y_pb2.py", True),
        ("b", "ab/model.py", False),
    ],
)
def test_patterns_are_those_of_gitignore(project: Project, pattern: str, path: str, matches: bool) -> None:
    root = project.folder
    assert Settings(root=root, exclude=(pattern,)).excludes(root / path) == matches
    ignoring = Settings(root=root, per_file_ignores=((pattern, ("GM201",)),))
    assert ignoring.ignored_codes(root / path) == (("GM201",) if matches else ())


def test_patterns_say_nothing_of_files_elsewhere(project: Project, tmp_path: Path) -> None:
    assert not Settings(root=project.folder, exclude=("*",)).excludes(tmp_path / "model.py")


def test_a_link_is_matched_by_its_own_name(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.touch()
    (project.folder / "link.py").symlink_to(outside)
    assert Settings(root=project.folder, exclude=("link.py",)).excludes(project.folder / "link.py")


@pytest.mark.parametrize(
    ("version", "carries"),
    [("2.11", True), ("2.11.1", True), ("2.12", True), ("10.0", True), ("2.9", False), ("2.10", False)],
)
def test_versions_are_compared_as_numbers(version: str, carries: bool) -> None:
    assert Settings(target_torch=version).carries_effects == carries
