"""A small encoder with the messages that model code tends to have. `build` makes it a target of `graphmend verify`."""

import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Encoder(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if mask is not None:
            warnings.warn("`mask` is ignored and will be removed", FutureWarning)
        h = self.proj(x)
        logger.info(f"hidden states of shape {h.shape}")
        if torch.isnan(h).any():
            logger.warning("nan in the hidden states, their sum is %s", h.sum())
        return torch.relu(h)


def build() -> tuple[nn.Module, list[tuple[torch.Tensor, ...]]]:
    """The model, and inputs for both sides of its branches."""
    x = torch.ones(2, 8)
    return Encoder(), [(x,), (x, torch.ones(2)), (x * float("nan"),)]
