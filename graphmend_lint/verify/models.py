"""Small random-weight models from Hugging Face configs, so that a target is one line.

    from graphmend_lint.verify.models import small

    def build():
        return small("T5Config")

Nothing is downloaded, and no weights are read. Needs transformers.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Sequence
from typing import Any

import torch

Inputs = dict[str, Any]

_TOKENS = 8
_VOCABULARY = 128
_WIDTH = 64
_LAYERS = 2
_HEADS = 2
_POSITIONS = 64
_IMAGE = 32

# Sizes by the names that configs give to them; a config takes those that it knows.
_SIZES: dict[str, int] = {
    "vocab_size": _VOCABULARY,
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embedding_size"), _WIDTH),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "num_decoder_layers", "n_layer", "n_layers"), _LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), _LAYERS),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads", "num_key_value_heads"), _HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), _HEADS),
    **dict.fromkeys(("head_dim", "d_kv"), _WIDTH // _HEADS),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner"), 2 * _WIDTH),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions"), _POSITIONS),
    "max_target_positions": _POSITIONS,
    "image_size": _IMAGE,
    "patch_size": _IMAGE // 4,
}
_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
# The first of these that knows the config.
_KINDS = ("AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq", "AutoModelForCausalLM", "AutoModel")


def small(
    config_class: str,
    *,
    model_class: str | None = None,
    inputs: Sequence[Any] | None = None,
    **overrides: Any,
) -> tuple[torch.nn.Module, list[Any]]:
    """A model of the config with small sizes, and one input set for it, or `inputs` in its place.

    `overrides` are given to the config. Without `model_class`, the model has a language model's head where
    there is one.

    Raises:
        ValueError: there is no such class, or its inputs are not known: give `inputs`.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers: Any = importlib.import_module("transformers")
    config = _config(_class(transformers, config_class), overrides)
    model = _model(transformers, config, model_class)
    return model, list(inputs) if inputs is not None else [_inputs(model, config)]


def _class(transformers: Any, name: str) -> Any:
    found = getattr(transformers, name, None)
    if found is None:
        raise ValueError(f"transformers {transformers.__version__} has no {name}")
    return found


def _config(config_class: Any, overrides: dict[str, Any]) -> Any:
    usual = config_class()
    sizes = {name: size for name, size in _SIZES.items() if isinstance(getattr(usual, name, None), int)}
    ids = {name: number for name, number in _IDS.items() if _is_too_large(getattr(usual, name, None), sizes)}
    return config_class(**{**sizes, **ids, **overrides})


def _is_too_large(token: Any, sizes: dict[str, int]) -> bool:
    return isinstance(token, int) and token >= sizes.get("vocab_size", token + 1)


def _model(transformers: Any, config: Any, model_class: str | None) -> torch.nn.Module:
    if model_class is not None:
        made: torch.nn.Module = _class(transformers, model_class)(config)
        return made
    for kind in _KINDS:
        try:
            found: torch.nn.Module = getattr(transformers, kind).from_config(config)
        except ValueError:
            continue
        return found
    raise ValueError(f"transformers knows no model of {type(config).__name__}: give model_class")


def _inputs(model: torch.nn.Module, config: Any) -> Inputs:
    main = getattr(model, "main_input_name", "input_ids")
    accepted = inspect.signature(model.forward).parameters
    if main == "pixel_values":
        size = getattr(config, "image_size", None)
        if isinstance(size, int):
            return {main: torch.randn(1, getattr(config, "num_channels", 3), size, size)}
    decoder = {"decoder_input_ids": _tokens(1)} if "decoder_input_ids" in accepted else {}
    if main == "input_ids":
        mask = {"attention_mask": torch.ones(1, _TOKENS, dtype=torch.long)} if "attention_mask" in accepted else {}
        return {main: _tokens(), **mask, **decoder}
    if main == "input_features" and isinstance(getattr(config, "max_source_positions", None), int):
        return {main: torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions), **decoder}
    raise ValueError(f"what {type(model).__name__} takes as {main} is not known: give inputs")


def _tokens(count: int = _TOKENS) -> torch.Tensor:
    # The first ones are special.
    return torch.randint(3, _VOCABULARY, (1, count))
