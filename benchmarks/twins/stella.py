"""The pattern of Stella: padding is taken out in front of the encoder, and put back behind it."""

from __future__ import annotations

import torch
from torch import nn

VOCAB, HIDDEN, LAYERS, HEADS = 128, 64, 2, 2


class Layer(nn.Module):
    """Tokens of all sequences in a row; attention stays within each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.project = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, tokens: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        parts = self.project(self.norm(tokens)).unflatten(-1, (3, HEADS, HIDDEN // HEADS)).split(lengths)
        mixed = [nn.functional.scaled_dot_product_attention(*part.permute(1, 2, 0, 3)) for part in parts]
        out: torch.Tensor = tokens + self.out(torch.cat([part.transpose(0, 1).flatten(1) for part in mixed]))
        return out


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, tokens: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        for layer in self.layers:
            tokens = layer(tokens, lengths)
        return tokens


class Stella(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, HIDDEN)
        self.encoder = Encoder()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden_states = self.embeddings(input_ids)
        lengths = attention_mask.sum(dim=1).tolist()
        kept = attention_mask.flatten().nonzero().flatten()
        tokens = self.encoder(hidden_states[attention_mask.bool()], lengths)
        padded = torch.zeros_like(hidden_states).flatten(0, 1).index_put((kept,), tokens).view_as(hidden_states)
        vectors = padded.sum(dim=1) / attention_mask.sum(dim=1, keepdim=True)
        return nn.functional.normalize(vectors, dim=-1)
