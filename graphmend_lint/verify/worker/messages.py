"""Everything that is heard while the model runs: log records, output and warnings, in order.

Torch's own messages are left out: compiled code makes torch talk, and that is not what the user's code says.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

_TORCH = str(Path(torch.__file__).parent)
_LOUDEST = logging.DEBUG

# Untyped in torch. What it wraps stays out of Dynamo's sight while compiled code runs.
_unseen: Any = torch.compiler.disable
_torch_logging: Any = torch._logging


@dataclass(slots=True)
class Ear:
    """Collects (channel, category, text), and why torch recompiled."""

    heard: list[tuple[str, str, str]] = field(default_factory=list)
    recompiles: list[str] = field(default_factory=list)

    def take(self) -> list[dict[str, str]]:
        """What was heard since the last time; written output in whole lines, however it was written."""
        lines = [message for run in _joined(self.heard) for message in _in_lines(run)]
        self.heard.clear()
        return [{"channel": channel, "category": category, "text": text} for channel, category, text in lines]


@contextlib.contextmanager
def listening(packages: Collection[str]) -> Iterator[Ear]:
    """Hears everything, also log records below the level in force if they come from a logger of `packages`.

    The messages go to the ear instead of to where they usually go.
    """
    ear = Ear()
    _torch_logging.set_logs(recompiles=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_warnings(ear))
        stack.enter_context(_logging(ear, packages))
        # Real text files over a raw file of ours: Dynamo and the code that writes see the usual type.
        stack.enter_context(contextlib.redirect_stdout(_text_file(ear, "stdout")))
        stack.enter_context(contextlib.redirect_stderr(_text_file(ear, "stderr")))
        yield ear


def _joined(heard: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    joined: list[tuple[str, str, str]] = []
    for channel, category, text in heard:
        if channel in ("stdout", "stderr") and joined and joined[-1][0] == channel:
            joined[-1] = (channel, category, joined[-1][2] + text)
        else:
            joined.append((channel, category, text))
    return joined


def _in_lines(message: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    channel, category, text = message
    if channel not in ("stdout", "stderr"):
        return [message]
    return [(channel, category, line) for line in text.splitlines(keepends=True)]


class _Raw(io.RawIOBase):
    """The bytes end of a text file, which hands what is written to a function."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = _unseen(write)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._write(bytes(data).decode("utf-8", "replace"))
        return len(data)


def _text_file(ear: Ear, channel: str) -> io.TextIOWrapper:
    raw: Any = _Raw(lambda text: ear.heard.append((channel, "", text)))
    return io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)


@contextlib.contextmanager
def _warnings(ear: Ear) -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: Any = None,
    ) -> None:
        if not filename.startswith(_TORCH) and not _torch_warned():
            ear.heard.append(("warning", category.__name__, str(message)))

    with warnings.catch_warnings():
        # How often the code warns is what is compared, not how often the filters of the day let it through.
        warnings.simplefilter("always")
        warnings.showwarning = _unseen(show)
        yield


def _torch_warned() -> bool:
    """True if the frame that called `warnings.warn` is torch's; the warning may be attributed to another
    one.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != warnings.__file__:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename == warnings.__file__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_TORCH)


@contextlib.contextmanager
def _logging(ear: Ear, packages: Collection[str]) -> Iterator[None]:
    """Takes records where a logger hands them to handlers: no setting of handlers or of propagation hides
    them.
    """
    levels = _levels(packages)
    pass_on = logging.Logger.callHandlers

    def call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
        if record.name == "torch" or record.name.startswith("torch."):
            if record.name.endswith(".__recompiles"):
                ear.recompiles.append(record.getMessage())
        elif record.levelno >= _level_of(record.name, levels):
            ear.heard.append(("log", f"{record.name} {record.levelname}", record.getMessage()))

    owner: Any = logging.Logger
    owner.callHandlers = _unseen(call_handlers)
    logging.getLogger().setLevel(_LOUDEST)
    for package in packages:
        logging.getLogger(package).setLevel(_LOUDEST)
    try:
        yield
    finally:
        owner.callHandlers = pass_on


def _levels(packages: Collection[str]) -> dict[str, int]:
    """The level from which each logger is heard, for those that set one."""
    levels = {"": logging.getLogger().level}
    for name, logger in logging.Logger.manager.loggerDict.items():
        if isinstance(logger, logging.Logger) and logger.level:
            levels[name] = logger.level
    return levels | dict.fromkeys(packages, _LOUDEST)


def _level_of(name: str, levels: dict[str, int]) -> int:
    while name and name not in levels:
        name = name.rpartition(".")[0]
    return levels[name]
