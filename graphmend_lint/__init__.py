"""Finds the lines that break torch.compile graphs, fixes the safe ones, and proves the fix."""

from __future__ import annotations

__version__ = "0.3.0"
