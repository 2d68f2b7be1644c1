"""Which names hold a `logging.Logger`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.analysis.conftest import Code

Make = Callable[..., Code]


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("import logging\nlogger = logging.getLogger(__name__)", "logger", "logger"),
        ("import logging\nanything = logging.getLogger()", "anything", "logger"),
        ("import logging as l\nlogger = l.getLogger()", "logger", "logger"),
        ("from logging import getLogger as get\nlogger = get()", "logger", "logger"),
        ("import logging\nlogger: logging.Logger = logging.getLogger()", "logger", "logger"),
        ("import logging\nif a:\n    logger = logging.getLogger()", "logger", "logger"),
        ("from transformers.utils import logging\nlogger = logging.get_logger()", "logger", "logger"),
        ("import logging\ndef make():\n    return logging.getLogger()\nlogger = make()", "logger", "logger"),
        ("import logging\ndef make():\n    l = logging.getLogger()\n    return l\nlogger = make()", "logger", "logger"),
        ("import logging\ndef make():\n    return Odd()\nlogger = make()", "logger", "maybe"),
        ("def make():\n    return make()\nlogger = make()", "logger", "maybe"),
        ("from loguru import logger", "logger", "maybe"),
        ("import structlog\nlogger = structlog.get_logger()", "logger", "maybe"),
        ("logger = None", "logger", "maybe"),
        ("import logging\nlogger = logging.getLogger()\nlogger = None", "logger", "maybe"),
        ("import structlog\nconsole = structlog.get_logger()", "console", None),
        ("log = {}", "log", "maybe"),
        ("from math import log", "log", "maybe"),
        ("def logger(): ...", "logger", None),
        ("class logger: ...", "logger", None),
        ("", "logger", "maybe"),
        ("import logging", "logging.getLogger()", "local"),
        ("import logging", "logging.getLogger('x')", "local"),
        ("", "anything()", None),
    ],
)
def test_module_level(code: Make, module: str, name: str, expected: str | None) -> None:
    assert code(f"{module}\ndef f(): ...\n").logger(name, "f") == expected


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("logger", "maybe"),
        ("logger=None", "maybe"),
        ("logger: logging.Logger", "logger"),
        ("anything: logging.Logger", "logger"),
        ("logger: 'Tracker'", "maybe"),
        ("anything", None),
    ],
)
def test_parameters(code: Make, parameter: str, expected: str | None) -> None:
    name = parameter.partition(":")[0].partition("=")[0]
    assert code(f"import logging\ndef f({parameter}): ...\n").logger(name, "f") == expected


def test_a_logger_made_in_a_function_is_local(code: Make) -> None:
    project = code("import logging\ndef f():\n    log = logging.getLogger()\n    def inner(): ...\n")
    assert project.logger("log", "f") == "local"
    assert project.logger("log", "f.<locals>.inner") == "local"


ATTRIBUTES = """
    import logging
    class Base:
        shared = logging.getLogger("shared")
        def __init__(self):
            self.logger = logging.getLogger("a")
            self.log = make()
            self.odd = logging.getLogger("b")
    class Net(Base):
        def f(self):
            ...
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("self.logger", "logger"),
        ("self.shared", "logger"),
        ("self.odd", "logger"),
        ("self.log", "maybe"),
        ("self._logger", "maybe"),
        ("self.console", None),
        ("self", None),
        ("other.logger", "maybe"),
    ],
)
def test_attributes(code: Make, name: str, expected: str | None) -> None:
    assert code(ATTRIBUTES).logger(name, "Net.f") == expected


def test_a_logger_imported_from_another_file(code: Make) -> None:
    project = code(
        {
            "pkg/__init__.py": "from .log import logger\n",
            "pkg/log.py": "import logging\nlogger = logging.getLogger()\n",
            "pkg/m.py": "from . import log, logger as renamed\nfrom pkg import logger\ndef f(): ...\n",
        }
    )
    assert project.logger("renamed", "f", "pkg/m.py") == "logger"
    assert project.logger("logger", "f", "pkg/m.py") == "logger"
    assert project.logger("log.logger", "f", "pkg/m.py") == "logger"
