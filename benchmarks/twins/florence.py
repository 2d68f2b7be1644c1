"""The pattern of Florence-2: in half precision, each encoder layer clamps what has overflowed, without an `else`.

An image becomes tokens in front of those of the prompt; an encoder and a decoder follow.
"""

from __future__ import annotations

import torch
from torch import nn

VOCAB, HIDDEN, LAYERS, HEADS, POSITIONS, PATCH = 128, 64, 2, 2, 64, 8


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(HIDDEN, HIDDEN)
        self.key_value = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        query = self.query(x).unflatten(-1, (HEADS, HIDDEN // HEADS)).transpose(1, 2)
        key, value = self.key_value(seen).unflatten(-1, (2, HEADS, HIDDEN // HEADS)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        out: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.narrow = nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.narrow(nn.functional.gelu(self.wide(x)))
        return out


class EncoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.attention_norm = nn.LayerNorm(HIDDEN)
        self.feed_forward = FeedForward()
        self.final_norm = nn.LayerNorm(HIDDEN)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden_states = self.attention_norm(hidden_states + self.attention(hidden_states, hidden_states))
        hidden_states = self.final_norm(hidden_states + self.feed_forward(hidden_states))
        if hidden_states.dtype == torch.float16 and (
            torch.isinf(hidden_states).any() or torch.isnan(hidden_states).any()
        ):
            limit = torch.finfo(hidden_states.dtype).max - 1000
            hidden_states = torch.clamp(hidden_states, min=-limit, max=limit)
        return hidden_states


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(POSITIONS, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = x + self.table(torch.arange(x.shape[1], device=x.device))
        return out


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = Positions()
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden_states: torch.Tensor = self.norm(self.positions(x))
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.cross_attention = Attention()
        self.feed_forward = FeedForward()
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(3))

    def forward(self, x: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](x + self.attention(x, x))
        x = self.norms[1](x + self.cross_attention(x, encoded))
        out: torch.Tensor = self.norms[2](x + self.feed_forward(x))
        return out


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = Positions()
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        x = self.positions(x)
        for layer in self.layers:
            x = layer(x, encoded)
        return x


class Vision(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, HIDDEN, PATCH, PATCH)
        self.block = FeedForward()

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.patches(pixel_values).flatten(2).transpose(1, 2)
        out: torch.Tensor = x + self.block(x)
        return out


class LanguageModel(nn.Module):
    def __init__(self, embeddings: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.encoder = Encoder()
        self.decoder = Decoder()

    def forward(self, x: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.decoder(self.embeddings(decoder_input_ids), self.encoder(x))
        return out


class Florence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, HIDDEN)
        self.vision = Vision()
        self.language_model = LanguageModel(self.embeddings)
        self.lm_head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(
        self, input_ids: torch.Tensor, pixel_values: torch.Tensor, decoder_input_ids: torch.Tensor
    ) -> torch.Tensor:
        x = torch.cat([self.vision(pixel_values), self.embeddings(input_ids)], dim=1)
        logits: torch.Tensor = self.lm_head(self.language_model(x, decoder_input_ids))
        return logits
