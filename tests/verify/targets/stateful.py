"""A model whose results depend on what earlier calls left behind: wrong fixes of it show in many ways."""

from __future__ import annotations

import logging
from typing import Any

import torch

logger = logging.getLogger(__name__)
history: list[int] = []


class Stateful(torch.nn.Module):
    count: torch.Tensor
    short: torch.Tensor
    long: torch.Tensor
    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("short", torch.full((4,), 2.0))
        self.register_buffer("long", torch.full((4,), 3.0))
        # The same tensor under two names, as the rotary embeddings of Hugging Face have it.
        self.scale = self.short

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.count += 1
        logger.info("call")
        if (x > 10).any():
            self.scale = self.long
        else:
            self.scale = self.short
        y = self.linear(x) * self.scale
        if (y > 0).all():
            z = torch.sqrt(y)
        else:
            z = y
        noise = torch.rand_like(z)
        return {"x": x.view(-1), "y": y * 2, "z": z + noise}


def build() -> tuple[torch.nn.Module, list[tuple[torch.Tensor, ...]]]:
    """Short, long, short."""
    short = torch.tensor([[0.5, -1.0, 2.0, 0.0]])
    return Stateful(), [(short,), (short * 20,), (short,)]
