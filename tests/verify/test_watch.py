"""Watched code does what the original does, and counts the sides of its tests. No torch is needed for that."""

from __future__ import annotations

import builtins
import importlib.util
import json
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphmend_lint.verify.worker.watch import Watch

SOURCE = '''"""Doc."""
class Box:
    def get(self, n, /, *rest, flag=False, **more):
        """The doc string stays first."""
        é = 'ä'; found = n > 0 and not (flag or n > 5)
        if n > 2:
            return 'big'
        elif n > 1:
            return 'middle'
        return (é if n else 'zero') + str(found)

def numbers(count):
    if count:
        yield count
'''
EDITS = [
    ("when", "n > 0 and not (flag or n > 5)"),
    ("select", "if n > 2:\n            return 'big'\n        elif n > 1:\n            return 'middle'"),
    ("choose", "é if n else 'zero'"),
    ("select", "if count:\n        yield count"),
]


def span(text: str) -> list[int]:
    start = SOURCE.index(text)
    return [part for offset in (start, start + len(text)) for part in _place(SOURCE[:offset])]


def _place(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - before.rfind("\n") - 1


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    file = tmp_path / "watched.py"
    file.write_text(SOURCE, encoding="utf-8")
    edits = [{"kind": kind, "span": span(text)} for kind, text in EDITS]
    manifest = tmp_path / "watch.json"
    manifest.write_text(json.dumps({"files": {str(file): {"fixed": str(file), "edits": edits}}}))
    for name in ("__graphmend_side__", "__graphmend_enter__"):
        monkeypatch.setattr(builtins, name, None, raising=False)
    monkeypatch.setattr(SourceFileLoader, "get_code", SourceFileLoader.get_code)
    made = Watch(manifest)
    made.install()
    return made


def imported(watch: Watch) -> ModuleType:
    (file,) = watch.files
    spec = importlib.util.spec_from_file_location("watched", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_code_does_what_it_did(watch: Watch) -> None:
    module: Any = imported(watch)
    box = module.Box()
    assert [box.get(n) for n in (0, 1, 2, 3)] == ["zeroFalse", "äTrue", "middle", "big"]
    assert list(module.numbers(3)) == [3]
    assert box.get.__doc__ == "The doc string stays first."
    with pytest.raises(TypeError) as caught:
        box.get("text")
    assert caught.traceback[-1].lineno + 1 == 5


def test_every_test_of_a_rewritten_place_is_counted(watch: Watch) -> None:
    module: Any = imported(watch)
    for n in (0, 1, 2, 3, 3):
        module.Box().get(n)
    whole = {watch.tests[number].code: watch.tests[number].times for number in watch.whole}
    assert whole == {
        "n > 0 and (not (flag or n > 5))": [4, 1],
        "n > 2": [2, 3],
        "n > 1": [1, 2],
        "n": [1, 1],
        "count": [0, 0],
    }
    parts = {test.code for number, test in enumerate(watch.tests) if number not in watch.whole}
    assert parts == {"n > 0", "flag", "n > 5"}


def test_arguments_are_kept_at_the_entry(watch: Watch) -> None:
    watch.keep = dict
    module: Any = imported(watch)
    for n in range(9):
        module.Box().get(n, 7, flag=True, other=1)
    (box,) = (around for around in watch.functions if around.name == "get")
    assert [call.values["n"] for call in box.calls if call.values] == [0, 1, 2, 3]
    assert box.calls[0].values is not None
    assert {name: box.calls[0].values[name] for name in ("rest", "flag", "more")} == {
        "rest": (7,),
        "flag": True,
        "more": {"other": 1},
    }
    assert box.steps == (("Box", 0), ("get", 0))
    assert [around.name for around in watch.functions if not around.replays] == ["numbers"]
