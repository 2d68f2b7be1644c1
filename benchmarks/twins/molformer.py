"""A small model of our own with the guard of MoLFormer: each layer's attention compares the mask that it is given."""

from __future__ import annotations

import torch
from torch import nn

VOCAB, HIDDEN, LAYERS, HEADS = 128, 64, 5, 2


class LinearAttention(nn.Module):
    """Attention in linear time, which has no way to mask single pairs of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key = nn.Linear(HIDDEN, HIDDEN)
        self.value = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor, pair_mask: torch.Tensor, token_mask: torch.Tensor) -> torch.Tensor:
        if not torch.equal(pair_mask, token_mask[:, None, :].expand_as(pair_mask)):
            raise ValueError("linear attention can only mask tokens, not pairs of them")
        query, key, value = (self._heads(layer(x)) for layer in (self.query, self.key, self.value))
        key = (key.relu() + 1e-3) * token_mask[:, None, :, None]
        query = query.relu() + 1e-3
        weights = query @ key.sum(dim=-2, keepdim=True).transpose(-1, -2)
        mixed = query @ (key.transpose(-1, -2) @ value) / weights
        return mixed.transpose(1, 2).flatten(2)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(*x.shape[:-1], HEADS, HIDDEN // HEADS).transpose(1, 2)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = LinearAttention()
        self.norm = nn.LayerNorm(HIDDEN)
        self.feed_forward = nn.Sequential(nn.Linear(HIDDEN, 2 * HIDDEN), nn.GELU(), nn.Linear(2 * HIDDEN, HIDDEN))

    def forward(self, x: torch.Tensor, pair_mask: torch.Tensor, token_mask: torch.Tensor) -> torch.Tensor:
        mixed: torch.Tensor = self.attention(x, pair_mask, token_mask)
        fed: torch.Tensor = self.feed_forward(self.norm(x + mixed))
        return x + mixed + fed


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, x: torch.Tensor, token_mask: torch.Tensor) -> torch.Tensor:
        pair_mask = token_mask[:, None, :].expand(-1, x.shape[1], -1)
        for layer in self.layers:
            x = layer(x, pair_mask, token_mask)
        normed: torch.Tensor = self.norm(x)
        return normed


class MoLFormer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, HIDDEN)
        self.encoder = Encoder()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        mask = attention_mask.to(self.embeddings.weight.dtype)
        encoded: torch.Tensor = self.encoder(self.embeddings(input_ids), mask)
        return (encoded * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
