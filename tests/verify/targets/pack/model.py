"""A package with a relative import, a data file beside it, and a result that is an object of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .helper import remark  # noqa: TID252 - what the overlay has to keep working

SCALE = float((Path(__file__).parent / "scale.txt").read_text())


@dataclass
class Result:
    value: torch.Tensor
    parts: tuple[torch.Tensor, ...]
    cache: dict[str, Any]


class Model(torch.nn.Module):
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor, *, shift: float = 0.0) -> Result:
        self.calls += 1
        y = remark(self.linear(x)) * SCALE + shift
        nan = torch.log(-y.abs())
        return Result(y + torch.rand_like(y), (nan, y > 0), {"calls": self.calls.clone(), "shift": shift})


def build() -> tuple[torch.nn.Module, list[Any]]:
    x = torch.randn(2, 3)
    return Model(), [(x,), {"x": x}, ((x,), {"shift": 2.0})]
