"""Processes that file permissions apply to, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest

_PR_CAPBSET_DROP = 24
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2


def as_anyone() -> Callable[[], None] | None:
    """What a new process is to do first. Skips the test where root cannot give up its power."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    try:
        prctl = ctypes.CDLL(None).prctl
    except (AttributeError, OSError):
        pytest.skip("as root, permissions are not enforced")
    status = Path("/proc/self/status").read_text().splitlines()
    bounding = next((int(line.split()[1], 16) for line in status if line.startswith("CapBnd")), 0)
    if not bounding & (1 << 8):  # CAP_SETPCAP
        pytest.skip("as root, permissions are not enforced")

    def drop() -> None:
        for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
            prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)

    return drop
