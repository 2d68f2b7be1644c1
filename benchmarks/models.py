"""Small random-weight Hugging Face models whose `forward` takes the path that the paper's Table 2 measured.

Every public function here is a target of `graphmend verify` (`benchmarks.models:t5`): it takes no argument
and returns the model and its input sets. Nothing is downloaded: a model is made from a config.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

# What all models share is imported once, for all runs of an arm.
import transformers.modeling_utils  # noqa: F401

Inputs = dict[str, Any]
Target = tuple[torch.nn.Module, list[Inputs]]

VOCAB, HIDDEN, LAYERS, HEADS, FFN, POSITIONS, TOKENS = 128, 64, 2, 2, 128, 64, 8


def t5() -> Target:
    """The decoder is given no cache, so that it makes the deprecated tuple and says so."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=VOCAB,
        d_model=HIDDEN,
        d_kv=HIDDEN // HEADS,
        d_ff=FFN,
        num_layers=LAYERS,
        num_heads=HEADS,
        decoder_start_token_id=0,
    )
    return T5ForConditionalGeneration(config), [{"input_ids": _tokens(), "decoder_input_ids": _tokens(1)}]


def whisper() -> Target:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        **_seq2seq("max_source_positions", "max_target_positions"),
        vocab_size=VOCAB,
        num_mel_bins=80,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    features = torch.randn(1, 80, 2 * POSITIONS)
    return WhisperForConditionalGeneration(config), [{"input_features": features, "decoder_input_ids": _tokens(1)}]


def bart() -> Target:
    """In fp32, where the overflow guard of the encoder layer is dead code."""
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(BartConfig(**_seq2seq(), vocab_size=VOCAB)), [_masked_seq2seq_inputs()]


def bart16() -> Target:
    """In fp16, where the overflow guard of the encoder layer reads tensor data."""
    model, inputs = bart()
    return model.half(), inputs


def blenderbot() -> Target:
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    config = BlenderbotConfig(**_seq2seq(), vocab_size=VOCAB)
    return BlenderbotForConditionalGeneration(config), [_masked_seq2seq_inputs()]


def marian() -> Target:
    """In fp32, where the overflow guard of the encoder layer is dead code."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(**_seq2seq(), vocab_size=VOCAB, pad_token_id=0, decoder_start_token_id=0)
    return MarianMTModel(config), [_masked_seq2seq_inputs()]


def marian16() -> Target:
    """In fp16, where the overflow guard of the encoder layer reads tensor data."""
    model, inputs = marian()
    return model.half(), inputs


def pegasus() -> Target:
    from transformers import PegasusConfig, PegasusForCausalLM

    return PegasusForCausalLM(PegasusConfig(**_seq2seq(), vocab_size=VOCAB)), [{"input_ids": _tokens()}]


def biogpt() -> Target:
    from transformers import BioGptConfig, BioGptForCausalLM

    return BioGptForCausalLM(BioGptConfig(vocab_size=VOCAB, **_encoder())), [{"input_ids": _tokens()}]


def layoutlmv3() -> Target:
    from transformers import LayoutLMv3Config, LayoutLMv3Model

    config = LayoutLMv3Config(
        vocab_size=VOCAB,
        **_encoder(),
        coordinate_size=8,
        shape_size=16,
        max_2d_position_embeddings=1024,
        visual_embed=False,
    )
    inputs = {
        "input_ids": _tokens(),
        "bbox": torch.zeros(1, TOKENS, 4, dtype=torch.long),
        "attention_mask": torch.ones(1, TOKENS, dtype=torch.long),
    }
    return LayoutLMv3Model(config), [inputs]


def longformer() -> Target:
    """Twenty tokens are no multiple of the attention window of eight, so the model pads and says so."""
    from transformers import LongformerConfig, LongformerModel

    config = LongformerConfig(
        vocab_size=VOCAB, **{**_encoder(), "max_position_embeddings": 512}, attention_window=[8] * LAYERS
    )
    inputs = {"input_ids": _tokens(20), "attention_mask": torch.ones(1, 20, dtype=torch.long)}
    return LongformerModel(config), [inputs]


def phi() -> Target:
    """Longrope rescaling, which compares the sequence length with the original positions: short, then long."""
    from transformers import Phi3Config, Phi3ForCausalLM

    half = HIDDEN // HEADS // 2
    config = Phi3Config(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=POSITIONS,
        original_max_position_embeddings=16,
        pad_token_id=0,
        rope_scaling={"type": "longrope", "short_factor": [1.0] * half, "long_factor": [2.0] * half},
    )
    return Phi3ForCausalLM(config), [{"input_ids": _tokens()}, {"input_ids": _tokens(24)}]


def gdino() -> Target:
    from transformers import BertConfig, GroundingDinoConfig, GroundingDinoModel, SwinConfig

    swin = SwinConfig(
        image_size=32,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[1, 1],
        window_size=2,
        out_features=["stage1", "stage2"],
    )
    bert = BertConfig(vocab_size=VOCAB, **_encoder())
    config = GroundingDinoConfig(
        backbone_config=swin,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        text_config=bert,
        d_model=HIDDEN,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=FFN,
        decoder_ffn_dim=FFN,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        num_queries=4,
        num_feature_levels=2,
    )
    inputs = {"pixel_values": torch.randn(1, 3, 32, 32), "input_ids": _tokens()}
    return GroundingDinoModel(config), [inputs]


def clap() -> Target:
    from transformers import ClapAudioConfig, ClapConfig, ClapModel, ClapTextConfig

    audio = ClapAudioConfig(enable_fusion=True)
    text = ClapTextConfig(vocab_size=VOCAB, **_encoder())
    config = ClapConfig.from_text_audio_configs(text, audio)
    inputs = {
        "input_ids": _tokens(),
        "input_features": torch.randn(1, 4, 1001, audio.num_mel_bins),
        "is_longer": torch.tensor([[True]]),
    }
    return ClapModel(config), [inputs]


def chronos() -> Target:
    """The model of the package chronos-forecasting; its encoder and its decoder are stacks of T5."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    config = T5Config(
        d_model=HIDDEN,
        d_kv=HIDDEN // HEADS,
        d_ff=FFN,
        num_layers=LAYERS,
        num_heads=HEADS,
        decoder_start_token_id=0,
        chronos_config={
            "context_length": POSITIONS,
            "prediction_length": TOKENS,
            "input_patch_size": 8,
            "input_patch_stride": 8,
            "quantiles": [0.1, 0.5, 0.9],
            "use_reg_token": True,
        },
    )
    return ChronosBoltModelForForecasting(config), [{"context": torch.randn(1, POSITIONS)}]


def molformer() -> Target:
    """The paper's model is code from the hub: this is one of our own with its guard."""
    from benchmarks.twins.molformer import MoLFormer

    return MoLFormer(), [{"input_ids": _tokens(), "attention_mask": _padded(1)}]


def florence() -> Target:
    """One of our own with the guard of Florence-2, in fp16."""
    from benchmarks.twins.florence import Florence

    inputs = {"input_ids": _tokens(), "pixel_values": torch.randn(1, 3, 32, 32).half(), "decoder_input_ids": _tokens(1)}
    return Florence().half(), [inputs]


def qwen_audio() -> Target:
    """One of our own with the branch of Qwen-Audio: a text, a text with an audio, and a later step."""
    from benchmarks.twins.qwen_audio import AUDIO_START, FEATURES, ForCausalLM

    text, sound = _tokens().clamp(min=AUDIO_START + 1), torch.randn(1, 3, FEATURES)
    with_audio = torch.cat([torch.tensor([[AUDIO_START]]), text], dim=1)
    later = {"input_ids": text[:, -1:], "past_key_values": (torch.zeros(1),)}
    return ForCausalLM(), [{"input_ids": text}, {"input_ids": with_audio, "input_audios": sound}, later]


def minicpm_moe() -> Target:
    """One of our own with the routing of MiniCPM's mixture of experts."""
    from benchmarks.twins.minicpm_moe import MiniCPM

    return MiniCPM(), [{"input_ids": _tokens()}]


def stella() -> Target:
    """One of our own that takes out padding as Stella does: two sequences of different lengths."""
    from benchmarks.twins.stella import Stella

    return Stella(), [{"input_ids": torch.cat([_tokens(), _tokens()]), "attention_mask": _padded(2)}]


def _padded(count: int) -> torch.Tensor:
    """A mask for sequences of which the last is shorter."""
    mask = torch.ones(count, TOKENS, dtype=torch.long)
    mask[-1, TOKENS - 2 :] = 0
    return mask


def _tokens(count: int = TOKENS) -> torch.Tensor:
    return torch.randint(3, VOCAB, (1, count))


def _masked_seq2seq_inputs() -> Inputs:
    return {
        "input_ids": _tokens(),
        "attention_mask": torch.ones(1, TOKENS, dtype=torch.long),
        "decoder_input_ids": _tokens(1),
    }


def _seq2seq(*positions: str) -> dict[str, int]:
    """The sizes of an encoder-decoder config; `positions` are the names that it gives to its lengths."""
    return {
        "d_model": HIDDEN,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": FFN,
        "decoder_ffn_dim": FFN,
        **dict.fromkeys(positions or ("max_position_embeddings",), POSITIONS),
    }


def _encoder() -> dict[str, int]:
    """The sizes of a BERT-like config."""
    return {
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": FFN,
        "max_position_embeddings": POSITIONS,
    }
