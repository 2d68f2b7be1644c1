"""Predicates of which the inputs reach one side only, in a method, in a nested function and in a decorator."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

logger = logging.getLogger(__name__)


def limited(limit: float) -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    def decorate(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def shorten(self: Any, x: torch.Tensor, *, twice: bool = False) -> torch.Tensor:
            """Values beyond the limit are said and cut."""
            if (x.abs() > limit).any():
                x = x.clamp(max=limit)
            return function(self, x) * (2 if twice else 1)

        return shorten

    return decorate


class Sides(torch.nn.Module):
    strict = True

    @limited(100.0)
    def middle(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.isnan(x).any():
            raise ValueError("nan")
        if self.strict and (x.abs() < 0).any():
            logger.warning("impossible")
        return self.middle(x, twice=True)


def build() -> tuple[torch.nn.Module, list[tuple[torch.Tensor, ...]]]:
    return Sides(), [(torch.tensor([1.0, -2.0]),)]
