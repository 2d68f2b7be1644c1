"""`--diff-base REV`: only what stands on lines that have changed since the branch left REV, told by the real git."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from graphmend_lint.findings import Span
from graphmend_lint.gate.changed_lines import Changes
from tests.cli.project import CLEAN, DECLINED, FIXED, MODEL, Project
from tests.gate.git import commit, git, repository

LINE = '        print("shape", x.shape)\n'
#: A second finding, in line 10; the first one stays in line 7.
MORE = MODEL.replace("        return", '        x = x + 1\n        x = x + 2\n        print("more")\n        return')


@pytest.fixture
def repo(project: Project) -> Project:
    """A repository with one finding that is committed."""
    project.write("model.py")
    repository(project)
    return project


def places(project: Project, revision: str = "HEAD", *args: str | Path) -> list[str]:
    """Where the run fails, as file:line."""
    outcome = project.run("check", "--diff-base", revision, "-q", *args)
    assert outcome.err == ""
    found = [":".join(line.split(":")[:2]) for line in outcome.lines]
    assert outcome.code == (1 if found else 0)
    return found


def test_unchanged(repo: Project) -> None:
    assert places(repo) == []
    assert repo.run("check", "--diff-base", "HEAD").lines == ["No new graph breaks in 1 file (1 on unchanged lines)."]


def test_in_the_working_tree_in_the_index_and_in_commits(repo: Project) -> None:
    repo.write("model.py", MORE)
    assert places(repo) == ["model.py:10"]
    git(repo.folder, "add", "model.py")
    assert places(repo) == ["model.py:10"]
    commit(repo)
    assert places(repo) == []
    assert places(repo, "HEAD~1") == ["model.py:10"]


def test_lines_around_do_not_count(repo: Project) -> None:
    repo.write("model.py", MODEL.replace(LINE, f"        x = x + 1\n{LINE}        x = x + 2\n"))
    assert places(repo) == []


def test_any_line_of_the_finding_counts(repo: Project) -> None:
    wrapped = '        print(\n            "shape",\n            x.shape,\n        )\n'
    repo.write("model.py", MODEL.replace(LINE, wrapped))
    commit(repo)
    repo.write("model.py", MODEL.replace(LINE, wrapped.replace("x.shape,", "x.shape,  # changed")))
    assert places(repo) == ["model.py:7"]
    repo.write("model.py", MODEL.replace(LINE, wrapped.replace('            "shape",\n', "")))
    assert places(repo) == ["model.py:7"], "a line that is gone from the middle of it"
    repo.write("model.py", MODEL.replace(LINE, wrapped).replace("        return torch.relu(x)\n", "        return x\n"))
    assert places(repo) == [], "a line behind it"


def test_a_line_removed_in_front(repo: Project) -> None:
    repo.write("model.py", MODEL.replace("from torch import nn\n", "").replace("nn.", "torch.nn."))
    assert places(repo) == []


def test_new_files_committed_staged_and_untracked(repo: Project) -> None:
    repo.write("committed.py")
    commit(repo)
    repo.write("staged.py")
    git(repo.folder, "add", "staged.py")
    repo.write("untracked.py")
    repo.write("folder/untracked.py")
    assert places(repo, "HEAD~1") == [
        "committed.py:7",
        "folder/untracked.py:7",
        "staged.py:7",
        "untracked.py:7",
    ]


def test_ignored_files_count_as_new(repo: Project) -> None:
    """Git has nothing to compare them with: nobody has seen these lines."""
    repo.write(".gitignore", "generated.py\n")
    commit(repo)
    repo.write("generated.py")
    assert places(repo) == ["generated.py:7"]


@pytest.mark.parametrize("how", ["mv", "by hand", "by hand and staged"])
def test_renamed_files(repo: Project, how: str) -> None:
    if how == "mv":
        git(repo.folder, "mv", "model.py", "renamed.py")
    else:
        (repo.folder / "model.py").rename(repo.folder / "renamed.py")
    if how == "by hand and staged":
        git(repo.folder, "add", "--all")
    assert places(repo) == []
    repo.write("renamed.py", MORE)
    assert places(repo) == ["renamed.py:10"]


def test_copied_files_are_new(repo: Project) -> None:
    repo.write("copied.py")
    assert places(repo) == ["copied.py:7"]


def test_deleted_files(repo: Project) -> None:
    repo.write("other.py", CLEAN)
    commit(repo)
    (repo.folder / "model.py").unlink()
    assert places(repo) == []


def test_strange_names(repo: Project) -> None:
    names = ["größe.py", 'quo"te.py', "tab\tin.py", "with space.py", "日本/モデル.py", os.fsdecode(b"\xff.py")]
    for name in names:
        repo.write(name)
    commit(repo)
    assert places(repo) == []
    for name in names:
        repo.write(name, MORE)
    outcome = repo.run("check", "--diff-base", "HEAD", "--output-format", "json")
    found = [(finding["path"], finding["line"]) for finding in outcome.json]
    assert sorted(found) == sorted((str(repo.folder / name), 10) for name in names)


def test_lines_that_look_like_a_patch(repo: Project) -> None:
    text = '"""\n{}+++ b/model.py\n@@ -1 +1,99 @@\ndiff --git a/x b/x\n"""\n' + MODEL
    repo.write("other.py", text.format("-- a/model.py\n"))
    commit(repo)
    repo.write("other.py", text.format("++ b/model.py\n@@ -1,99 +1,99 @@\n") + "# no line end")
    assert places(repo) == []


def test_no_line_end_at_the_end(repo: Project) -> None:
    """Git says so in a line of its own, between the two sides of the last hunk."""
    repo.write("a.py", MODEL.rstrip("\n"))
    repo.write("b.py")
    commit(repo)
    repo.write("a.py", MODEL.replace("return torch.relu(x)", "return print(x) or x"))
    repo.write("b.py", MORE)
    assert places(repo) == ["a.py:8", "b.py:10"]


@pytest.mark.parametrize("before", ["\n", "\r\n"])
def test_line_ends_do_not_count(project: Project, before: str) -> None:
    after = {"\n": "\r\n", "\r\n": "\n"}[before]
    project.write("model.py", MODEL.replace("\n", before))
    repository(project)
    project.write("model.py", MODEL.replace("\n", after))
    assert places(project) == []
    project.write("model.py", MORE.replace("\n", after))
    assert places(project) == ["model.py:10"]


# -- where it counts from ----------------------------------------------------------------------------------------------


def test_counts_from_where_the_branch_left(repo: Project) -> None:
    """What happened on the main branch meanwhile is no change of this one."""
    git(repo.folder, "switch", "--quiet", "--create", "topic")
    repo.write("mine.py", DECLINED)
    commit(repo)
    git(repo.folder, "switch", "--quiet", "main")
    repo.write("model.py", FIXED)
    commit(repo)
    git(repo.folder, "switch", "--quiet", "topic")
    assert places(repo, "main") == ["mine.py:7"]


@pytest.mark.parametrize("revision", ["HEAD", "main", "v1", "v2", "HEAD^{tree}^{commit}"])
def test_every_kind_of_revision(repo: Project, revision: str) -> None:
    git(repo.folder, "tag", "v1")
    git(repo.folder, "tag", "--annotate", "--message", "two", "v2")
    repo.write("model.py", MORE)
    if "tree" in revision:
        assert repo.run("check", "--diff-base", revision).code == 2
    else:
        assert places(repo, revision) == ["model.py:10"]


@pytest.mark.parametrize("revision", ["nope", "", "--help", "-1", "HEAD~99", "main..HEAD", "model.py", "a b", "0" * 40])
def test_no_such_revision(repo: Project, revision: str) -> None:
    outcome = repo.run("check", "--diff-base", revision)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors == [f"error: --diff-base: no revision `{revision}` in {repo.folder}"]


def test_nothing_in_common(repo: Project) -> None:
    git(repo.folder, "switch", "--quiet", "--orphan", "other")
    repo.write("model.py")
    commit(repo)
    outcome = repo.run("check", "--diff-base", "main")
    assert outcome.code == 2
    (line,) = outcome.errors
    assert line.startswith("error: --diff-base: `main` and HEAD have no commit in common")


def test_no_commit_yet(project: Project) -> None:
    git(project.folder, "init", "--quiet")
    outcome = project.run("check", "--diff-base", "HEAD")
    assert (outcome.code, len(outcome.errors)) == (2, 1)


def test_no_repository(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("check", "--diff-base", "HEAD")
    assert (outcome.code, outcome.out) == (2, "")
    (line,) = outcome.errors
    assert line.startswith("error: --diff-base: not a git repository")


def test_no_git(repo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo.folder))
    outcome = repo.run("check", "--diff-base", "HEAD")
    assert (outcome.code, outcome.errors) == (2, ["error: --diff-base: there is no program `git`"])


def test_from_a_subfolder(repo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write("a b/c/model.py")
    commit(repo)
    repo.write("a b/c/model.py", MORE)
    repo.write("model.py", MORE)
    monkeypatch.chdir(repo.folder / "a b")
    assert places(repo) == ["c/model.py:10"]
    assert len(places(repo, "HEAD", "..")) == 2
    monkeypatch.chdir("/")
    assert len(places(repo, "HEAD", repo.folder)) == 2


def test_from_a_link(repo: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write("model.py", MORE)
    (tmp_path / "link").symlink_to(repo.folder)
    monkeypatch.chdir(tmp_path / "link")
    assert places(repo) == ["model.py:10"]


def test_a_worktree(repo: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repo.folder, "worktree", "add", "--quiet", str(tmp_path / "second"))
    monkeypatch.chdir(tmp_path / "second")
    Path("model.py").write_text(MORE)
    Path("untracked.py").write_text(MODEL)
    assert places(repo) == ["model.py:10", "untracked.py:7"]


def test_a_shallow_clone(repo: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `actions/checkout` makes: the base is not there, which is an error and no pass."""
    repo.write("model.py", MORE)
    commit(repo)
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repo.folder}", "clone")
    monkeypatch.chdir(tmp_path / "clone")
    assert repo.run("check", "--diff-base", "HEAD~1").code == 2


def test_the_users_configuration_of_git(repo: Project) -> None:
    for name, value in {
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.renames": "false",
        "diff.interHunkContext": "9",
        "diff.context": "9",
        "diff.external": "false",
        "diff.relative": "true",
        "color.ui": "always",
        "core.quotePath": "true",
        "diff.algorithm": "patience",
        "core.autocrlf": "input",
    }.items():
        git(repo.folder, "config", name, value)
    git(repo.folder, "mv", "model.py", "größe.py")
    repo.write("größe.py", MORE)
    assert places(repo) == ["größe.py:10"]


@pytest.mark.parametrize(
    "variable", ["GIT_DIFF_OPTS=--unified=9", "GIT_LITERAL_PATHSPECS=1", "GIT_EXTERNAL_DIFF=false"]
)
def test_the_users_environment(repo: Project, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name, value)
    repo.write("model.py", MORE)
    repo.write("untracked.py")
    assert places(repo) == ["model.py:10", "untracked.py:7"]


def test_the_repository_is_only_read(repo: Project) -> None:
    repo.write("model.py", MORE)
    repo.write("untracked.py")
    hook = repo.write(".git/hooks/post-index-change", "#!/bin/sh\ntouch hook-was-here\n")
    hook.chmod(0o755)
    before = repo.files()
    places(repo)
    assert repo.files() == before


def test_a_submodule_counts_as_new(repo: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(repo.folder, other)
    git(repo.folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    commit(repo)
    assert places(repo) == ["sub/model.py:7"]


def test_a_file_outside_counts_as_new(repo: Project, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(MODEL)
    assert places(repo, "HEAD", repo.folder / "model.py", "--config", "pyproject.toml") == []
    outcome = repo.run("check", "--diff-base", "HEAD", "-q", "model.py", tmp_path / "outside.py")
    assert outcome.code == 2, "what they have in common is no repository"


def test_scripts_without_a_suffix(repo: Project) -> None:
    repo.write("script")
    commit(repo)
    assert places(repo, "HEAD", "script") == []
    repo.write("script", MORE)
    assert places(repo, "HEAD", "script") == ["script:10"]
    repo.write("odd [*] name")
    assert places(repo, "HEAD", "odd [*] name") == ["odd [*] name:7"]


# -- together with a baseline ------------------------------------------------------------------------------------------


def test_what_the_baseline_knows_does_not_fail(repo: Project) -> None:
    repo.write("other.py", DECLINED)
    repo.run("check", "--update-baseline")
    assert places(repo) == [], "on new lines, but known"
    repo.write("model.py", MORE)
    assert places(repo) == ["model.py:10"]
    assert repo.run("check", "--diff-base", "HEAD").lines[-1].startswith("Found 1 new graph break (2 known).")


def test_of_several_alike_the_one_on_a_changed_line_is_new(repo: Project) -> None:
    """The baseline has one; the second one was put in front of it."""
    repo.run("check", "--update-baseline")
    repo.write("model.py", MODEL.replace(LINE, f'        print(\n            "shape", x.shape\n        )\n{LINE}'))
    assert places(repo) == ["model.py:7"]


def test_pruning_with_it(repo: Project) -> None:
    repo.run("check", "--update-baseline")
    commit(repo)
    repo.write("model.py", FIXED)
    assert repo.run("check", "--diff-base", "HEAD", "--prune-baseline").code == 0
    assert '"findings": []' in repo.read("graphmend-baseline.json")


@pytest.mark.parametrize(
    ("line", "end", "touched"),
    [
        (1, 1, False),
        (2, 2, True),
        (3, 3, True),
        (4, 4, False),
        (1, 9, True),
        (5, 5, False),
        (6, 6, False),
        (5, 6, True),
    ],
)
def test_lines_and_gaps(line: int, end: int, touched: bool) -> None:
    changes = Changes(added=((2, 3),), removed_behind=(5,))
    assert changes.touch(Span(line, 0, end, 1)) is touched
