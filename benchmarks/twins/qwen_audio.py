"""The pattern of Qwen-Audio: in the first step, and only if a token starts an audio, its features replace tokens."""

from __future__ import annotations

import torch
from torch import nn

VOCAB, HIDDEN, FEATURES, AUDIO_START = 128, 64, 16, 7


class Decoder(nn.Module):
    """The audio tower must not run without an audio: it is costly, and there is nothing to give it."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, HIDDEN)
        self.audio = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN))
        self.block = nn.Sequential(nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.GELU())

    def forward(
        self,
        input_ids: torch.Tensor,
        past_key_values: tuple[torch.Tensor, ...] | None = None,
        input_audios: torch.Tensor | None = None,
    ) -> torch.Tensor:
        hidden_states: torch.Tensor = self.embeddings(input_ids)
        if past_key_values is None and torch.any(input_ids == AUDIO_START):
            rows, starts = torch.where(input_ids == AUDIO_START)
            audios = self.audio(input_audios)
            hidden_states = hidden_states.clone()
            for audio, row, start in zip(audios, rows, starts, strict=True):
                hidden_states[row, start + 1 : start + 1 + len(audio)] = audio
        out: torch.Tensor = hidden_states + self.block(hidden_states)
        return out


class ForCausalLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer = Decoder()
        self.lm_head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(
        self,
        input_ids: torch.Tensor,
        past_key_values: tuple[torch.Tensor, ...] | None = None,
        input_audios: torch.Tensor | None = None,
    ) -> torch.Tensor:
        logits: torch.Tensor = self.lm_head(self.transformer(input_ids, past_key_values, input_audios))
        return logits
