"""A model that says something in each call and refuses long inputs: most tests fix it in a wrong way."""

from __future__ import annotations

import logging

import torch

logger = logging.getLogger(__name__)


class Quiet(torch.nn.Module):
    offset: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        # Uninitialised on purpose: the arms must agree on it all the same.
        self.scale = torch.nn.Parameter(torch.empty(4))
        self.register_buffer("offset", torch.ones(4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 3:
            raise ValueError("too long")
        y = self.linear(x)
        logger.warning("rows %s", x.shape)
        z = y + self.offset * 2
        logger.info("done")
        return torch.cat([z, z * self.scale, y / 0 * 0])


def build() -> tuple[torch.nn.Module, list[tuple[torch.Tensor, ...]]]:
    return Quiet(), [(torch.randn(2, 4),), (torch.randn(5, 4),)]
