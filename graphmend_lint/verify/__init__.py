"""Proof of a fix on the user's own machine: the model runs as it is and with the fixes, and the two are
compared.

The package imports no torch and runs no user code: both happen in the subprocesses whose code is in `worker`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphmend_lint.verify.driver import FixedFile, FixFiles, verify
    from graphmend_lint.verify.options import Options
    from graphmend_lint.verify.target import BadTarget, TargetSpec
    from graphmend_lint.verify.verdict import Verdict

_HOMES = {
    "BadTarget": "target",
    "FixFiles": "driver",
    "FixedFile": "driver",
    "Options": "options",
    "TargetSpec": "target",
    "Verdict": "verdict",
    "verify": "driver",
}

__all__ = ["BadTarget", "FixFiles", "FixedFile", "Options", "TargetSpec", "Verdict", "verify"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
