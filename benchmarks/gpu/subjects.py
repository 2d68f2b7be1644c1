"""Models with random weights at the sizes that people run, and small ones of our own for what no model shows.

Nothing is downloaded. A subject is known by its name; its arms run in processes of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn

Inputs = dict[str, Any]
#: A model, the inputs of a pass over it, and inputs that its guard refuses, if it has one.
Built = tuple[nn.Module, list[Inputs], Inputs | None]


@dataclass(frozen=True, slots=True)
class Subject:
    """How to build a model, small or at its size, and which modules' files are fixed."""

    build: Callable[[bool], Built]
    modules: tuple[str, ...]


def _t5(small: bool) -> Built:
    """T5 at the size of t5-small. Its decoder makes a deprecated cache and says so."""
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 64, "d_kv": 32, "d_ff": 128, "num_layers": 1, "num_heads": 2, "vocab_size": 128}
    config = T5Config(decoder_start_token_id=0, **(sizes if small else {}))
    inputs = {"input_ids": _tokens(8 if small else 512), "decoder_input_ids": _tokens(1)}
    return T5ForConditionalGeneration(config), [inputs], None


def _bart(small: bool) -> Built:
    """BART at the size of bart-base in half precision, where its guards against overflow are live."""
    from transformers import BartConfig, BartForConditionalGeneration

    width, layers = (64, 1) if small else (768, 6)
    config = BartConfig(
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=width // 64 or 1,
        decoder_attention_heads=width // 64 or 1,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        **({"vocab_size": 128} if small else {}),
    )
    ids = _tokens(8 if small else 512)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": _tokens(1)}
    return BartForConditionalGeneration(config).half(), [inputs], None


def _phi(small: bool) -> Built:
    """A few layers of Phi with longrope, called with a short and a long text in turn."""
    from transformers import Phi3Config, Phi3ForCausalLM

    width, heads, layers, original = (64, 2, 1, 16) if small else (3072, 32, 4, 512)
    half = width // heads // 2
    config = Phi3Config(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        original_max_position_embeddings=original,
        max_position_embeddings=8 * original,
        pad_token_id=0,
        rope_scaling={"type": "longrope", "short_factor": [1.0] * half, "long_factor": [2.0] * half},
        **({"vocab_size": 128} if small else {}),
    )
    model = Phi3ForCausalLM(config)
    return model if small else model.half(), [{"input_ids": _tokens(n)} for n in (original // 2, 2 * original)], None


def _guarded(small: bool) -> Built:
    from benchmarks.gpu.guarded import Guarded

    width = 16 if small else 1024
    x = torch.randn(4, width)
    return Guarded(width, 2 if small else 8), [{"x": x}], {"x": x.clone().fill_(float("nan"))}


def _talking(small: bool) -> Built:
    from benchmarks.gpu.talking import Talking

    width = 16 if small else 1024
    return Talking(width, 2 if small else 8), [{"x": torch.randn(4, width)}], None


def _tokens(count: int) -> torch.Tensor:
    return torch.randint(3, 128, (1, count))


_SHARED = ("transformers.modeling_utils", "transformers.cache_utils", "transformers.modeling_rope_utils")

SUBJECTS = {
    "t5-small": Subject(_t5, ("transformers.models.t5.modeling_t5", *_SHARED)),
    "bart-base-fp16": Subject(_bart, ("transformers.models.bart.modeling_bart", *_SHARED)),
    "guarded": Subject(_guarded, ("benchmarks.gpu.guarded",)),
    "talking": Subject(_talking, ("benchmarks.gpu.talking",)),
    "phi-longrope": Subject(_phi, ("transformers.models.phi3.modeling_phi3", *_SHARED)),
}
