"""What a step is told, and where it leaves its results."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any


class StepFailure(Exception):
    """The step cannot give a result; the message is one line."""


class Mismatch(Exception):
    """The target builds something else than the original arm saved; the message names a difference."""


@dataclass(frozen=True, slots=True)
class Job:
    """The parsed job file; `options` are those of `verify.options.Options`, as JSON."""

    file: Path
    arm: str
    module: str
    attribute: str
    root: str
    options: dict[str, Any]
    folder: Path
    home: Path
    overlay: Path | None
    watch: Path | None
    steps: tuple[str, ...]

    @classmethod
    def load(cls, file: Path) -> Job:
        record = json.loads(file.read_text(encoding="utf-8"))
        return cls(
            file=file,
            arm=record["arm"],
            module=record["module"],
            attribute=record["attribute"],
            root=record["root"],
            options=record["options"],
            folder=Path(record["folder"]),
            home=Path(record["home"]),
            overlay=Path(record["overlay"]) if record["overlay"] else None,
            watch=Path(record["watch"]) if record["watch"] else None,
            steps=tuple(record["steps"]),
        )

    def callable(self) -> Callable[[], Any]:
        """The target, imported."""
        module = importlib.import_module(self.module)
        found = reduce(getattr, self.attribute.split("."), module)
        if not callable(found):
            raise TypeError(f"{self.attribute} is not callable")
        target: Callable[[], Any] = found
        return target

    @property
    def original(self) -> Path:
        """The home of the original arm."""
        return self.folder / "original"

    @property
    def shared(self) -> Path:
        """What the original arm saved for both: weights and inputs."""
        return self.folder / "shared.pt"

    def enter(self, activity: str) -> None:
        """Says what the arm is doing, for the one line that reports a hang."""
        (self.home / "current").write_text(activity, encoding="utf-8")

    def write(self, step: str, result: dict[str, Any]) -> None:
        """Leaves a result whole or not at all."""
        place = self.home / f"{step}.json"
        part = place.with_suffix(".part")
        part.write_text(json.dumps(result), encoding="utf-8")
        part.replace(place)

    def read(self, step: str) -> dict[str, Any] | None:
        """The result of a step of this arm, None before there is one."""
        return _read(self.home / f"{step}.json")

    def prepared(self) -> dict[str, Any] | None:
        """The result of the original arm's first step."""
        return _read(self.original / "prepare.json")


def _read(place: Path) -> dict[str, Any] | None:
    if not place.exists():
        return None
    result: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return result
