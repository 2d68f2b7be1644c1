"""How the command and the configuration choose targets and options. Nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from graphmend_lint import config
from graphmend_lint.cli import main
from graphmend_lint.verify import command
from graphmend_lint.verify.command import Request

CONFIG = """
[[tool.graphmend.verify]]
target = "models:short"
name = "short"
backend = "inductor"
require-both-sides = true
fix-path = ["src"]

[[tool.graphmend.verify]]
target = "models:long"
passes = 3
dynamic = true
unsafe-fixes = true
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    requests: list[Request] = []

    def run_all(given: Sequence[Request], **_: Any) -> int:
        requests.extend(given)
        return 0

    config._settings_of_folder.cache_clear()
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    monkeypatch.setattr(command, "run_all", run_all)
    return requests


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def test_without_a_target_all_entries_are_run_from_the_folder_of_the_configuration(
    asked: list[Request], tmp_path: Path
) -> None:
    assert run().exit_code == 0
    assert [request.target for request in asked] == ["models:short", "models:long"]
    assert {request.folder for request in asked} == {tmp_path}
    short, long = (request.options for request in asked)
    assert (short.backend, short.require_both_sides, short.passes) == ("inductor", True, 10)
    assert (long.backend, long.dynamic, long.passes) == ("eager", True, 3)
    assert asked[0].fix_paths == (tmp_path / "src",)


def test_an_entry_is_called_by_its_name_and_options_outweigh_it(asked: list[Request]) -> None:
    assert run("short", "--backend", "eager", "--static", "--passes", "0", "--seed", "0").exit_code == 0
    (request,) = asked
    assert request.target == "models:short"
    assert (request.options.backend, request.options.dynamic, request.options.passes) == ("eager", False, 0)
    assert request.options.require_both_sides


def test_any_other_target_stands_for_itself(asked: list[Request], tmp_path: Path) -> None:
    assert run("models:other").exit_code == 0
    assert [(request.target, request.folder) for request in asked] == [("models:other", tmp_path / "inner")]
    outcome = run("shrt")
    assert outcome.exit_code == 2
    assert "TARGET 'shrt' is no module:callable and no name of an entry (short)" in outcome.output


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tolerence = 1", '"tolerence" is none, did you mean "tolerance"?'),
        ('grad = "yes"', "`grad` is true or false"),
        ("calls = 0", "`calls` is a number of calls"),
        ("fix-path = 'src'", "`fix-path` is a list of paths"),
        ("timeout = -1", "`timeout` is a number"),
        ("max-breaks = -1", "`max-breaks` is a number of breaks"),
        ("max-breaks = true", "`max-breaks` is a number of breaks"),
    ],
)
def test_a_wrong_key_is_an_error_of_one_line(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f'[[tool.graphmend.verify]]\ntarget = "a:b"\n{line}\n')
    with pytest.raises(config.ConfigError) as caught:
        config.load_file(file)
    assert str(caught.value).startswith(f"{file}: [tool.graphmend] verify must be tables")
    assert says in str(caught.value)


def test_every_option_has_a_key() -> None:
    from dataclasses import fields

    from graphmend_lint.verify import Options

    names = {field.name.replace("_", "-") for field in fields(Options)}
    assert names | {"target", "name", "fix-path", "unsafe-fixes", "max-breaks"} == set(config.TARGET_KEYS)
