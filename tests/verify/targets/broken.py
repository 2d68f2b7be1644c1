"""Targets that cannot be run."""

from __future__ import annotations

import time
from typing import Any

import torch


def not_a_pair() -> Any:
    return torch.nn.Linear(2, 2)


def raises() -> Any:
    raise RuntimeError("no such weights\nand more")


def hangs() -> Any:
    time.sleep(600)
