"""The pattern of MiniCPM's mixture of experts: each expert is given the tokens that chose it, however many they are."""

from __future__ import annotations

import torch
from torch import nn

VOCAB, HIDDEN, LAYERS, HEADS, EXPERTS, CHOSEN = 128, 64, 2, 2, 4, 2


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x).unflatten(-1, (3, HEADS, HIDDEN // HEADS)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out


class Expert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, 2 * HIDDEN, bias=False)
        self.up = nn.Linear(HIDDEN, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.down(nn.functional.silu(self.gate(x)) * self.up(x))
        return out


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        tokens = hidden_states.flatten(0, 1)
        weights, chosen = self.gate(tokens).softmax(dim=-1).topk(CHOSEN, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            if token.shape[0] == 0:
                continue
            mixed.index_add_(0, token, expert(tokens[token]) * weights[token, place, None])
        return mixed.view_as(hidden_states)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = RMSNorm()
        self.attention = Attention()
        self.experts_norm = RMSNorm()
        self.experts = Experts()

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden_states = hidden_states + self.attention(self.attention_norm(hidden_states))
        out: torch.Tensor = hidden_states + self.experts(self.experts_norm(hidden_states))
        return out


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RMSNorm()

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        hidden_states: torch.Tensor = self.embeddings(input_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        out: torch.Tensor = self.norm(hidden_states)
        return out


class MiniCPM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.lm_head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.lm_head(self.model(input_ids))
        return logits
