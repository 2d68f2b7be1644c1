"""The distribution: what is in it, what it needs, and that the files around it agree with it."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import graphmend_lint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the working tree, built by the backend that is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def source_files() -> set[str]:
    """Paths inside the wheel of all Python and data files of the two packages."""
    found = set()
    for package in (ROOT / "graphmend_lint", ROOT / "rules" / "graphmend"):
        for path in package.rglob("*"):
            if path.is_file() and path.suffix in (".py", ".json", ".typed"):
                found.add(path.relative_to(package.parent).as_posix())
    return found


def test_wheel_holds_both_packages_and_nothing_else(wheel: Path):
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"graphmend_lint", "graphmend"}
    assert source_files() <= set(names)
    assert "graphmend_lint/analysis/torch_facts.json" in names


def test_wheel_says_what_the_package_says(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        info = f"graphmend_lint-{graphmend_lint.__version__}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        commands = archive.read(f"{info}/entry_points.txt").decode()
        licence = archive.read(f"{info}/licenses/LICENSE").decode()
    assert f"Version: {graphmend_lint.__version__}\n" in metadata
    assert "graphmend = graphmend_lint.cli:main" in commands
    assert licence.startswith("MIT License")


def test_linting_needs_no_torch(project: dict[str, Any]):
    names = {re.split(r"[^a-z0-9-]", requirement)[0] for requirement in project["dependencies"]}
    assert names == {"click", "fixit", "libcst", "pathspec", "rich", "tomli"}


@pytest.mark.parametrize("module", ["graphmend_lint", "graphmend_lint.findings", "graphmend_lint.analysis"])
def test_importing_brings_nothing_heavy(module: str):
    """Linting starts fast: the packages that take long to import are for fixing and verifying."""
    code = (
        f"import sys, {module}\n"
        "heavy = {'torch', 'libcst', 'fixit', 'transformers', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_changelog_begins_with_this_version():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == graphmend_lint.__version__


def test_hooks_call_commands_that_exist(project: dict[str, Any]):
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [hook["id"] for hook in hooks] == ["graphmend-lint", "graphmend-fix"]
    for hook in hooks:
        assert hook["entry"].split()[0] in project["scripts"]
        assert hook["language"] == "python"
        assert hook["types"] == ["python"]


def test_hook_file_is_valid():
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", ".pre-commit-hooks.yaml"]
    subprocess.run(command, check=True, cwd=ROOT)


def test_test_tools_are_pinned(project: dict[str, Any]):
    for extra in ("test", "dev"):
        for requirement in project["optional-dependencies"][extra]:
            assert "==" in requirement, requirement


def test_make_and_project_pin_the_same_torch(project: dict[str, Any]):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (pinned,) = re.findall(r"^TORCH \?= (.+)$", makefile, re.MULTILINE)
    assert pinned in project["optional-dependencies"]["test"]
