"""Small random-weight models of today's transformers, made from the names of their classes.

`benchmarks.modern_models:bart` is a target of `graphmend verify`: it takes no argument and returns the model and its
input sets. What the targets are is the table `RECIPES`; a model in float16 has the suffix 16.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers

# What all models share is imported once, for all runs of an arm.
import transformers.modeling_utils
from transformers import PretrainedConfig

Inputs = dict[str, Any]
Target = tuple[torch.nn.Module, list[Inputs]]

VOCAB, HIDDEN, LAYERS, HEADS, FFN, POSITIONS, TOKENS, IMAGE, PATCH = 128, 32, 2, 2, 64, 128, 8, 32, 8
#: The token that stands for a part of an image or of a video.
PLACEHOLDER = 9

#: What the configs of transformers call their sizes.
_NAMES = (
    (VOCAB, "vocab_size text_encoder_vocab_size"),
    (HIDDEN, "hidden_size d_model embed_dim projection_dim projection_size mask_dim conv_dim hidden_dim flow_size"),
    (HIDDEN, "text_encoder_width encoder_hidden_dim"),
    (LAYERS, "num_hidden_layers num_layers encoder_layers decoder_layers depth text_encoder_num_layers"),
    (LAYERS, "resampler_depth"),
    (HEADS, "num_attention_heads num_key_value_heads num_heads encoder_attention_heads decoder_attention_heads"),
    (HEADS, "resampler_n_heads moe_num_experts"),
    (HIDDEN // HEADS, "head_dim d_kv attention_head_size resampler_head_dim"),
    (FFN, "intermediate_size encoder_ffn_dim decoder_ffn_dim d_ff ffn_dim mlp_dim dim_feedforward"),
    (FFN, "encoder_feedforward_dim feed_forward_size alignment_intermediate_size"),
    (POSITIONS, "max_position_embeddings max_encoder_position_embeddings max_decoder_position_embeddings"),
    (IMAGE, "image_size"),
    (PATCH, "patch_size"),
    (PLACEHOLDER, "image_token_id image_token_index video_token_id video_token_index"),
    (0, "pad_token_id"),
    (1, "bos_token_id"),
    (2, "eos_token_id forced_eos_token_id decoder_start_token_id"),
)
SIZES = {name: size for size, names in _NAMES for name in names.split()}


def small(config_class: type[PretrainedConfig], **changes: Any) -> PretrainedConfig:
    """A config whose sizes, and those of the configs in it, are those of `SIZES`, but for the changes."""
    usual = vars(config_class())
    sizes = {name: _like(usual[name], size) for name, size in SIZES.items() if name in usual}
    parts = {
        name: small(type(value), **changes.pop(name, {}))
        for name, value in usual.items()
        if isinstance(value, PretrainedConfig)
    }
    return config_class(**{**sizes, **parts, **changes})


def _like(usual: Any, size: int) -> Any:
    """A size for each of those that the config has by default."""
    return type(usual)([size] * len(usual)) if isinstance(usual, (tuple, list)) else size


def text(_: torch.nn.Module) -> Inputs:
    return {"input_ids": _tokens(), "attention_mask": torch.ones(1, TOKENS, dtype=torch.long)}


def seq2seq(model: torch.nn.Module) -> Inputs:
    return {**text(model), "decoder_input_ids": _tokens(1)}


def series(model: Any) -> Inputs:
    """The past and the future of one time series, without covariates."""
    config = model.config
    past = config.context_length + max(config.lags_sequence)
    return {
        "past_values": torch.rand(1, past),
        "past_time_features": torch.rand(1, past, config.num_time_features),
        "past_observed_mask": torch.ones(1, past),
        "future_values": torch.rand(1, config.prediction_length),
        "future_time_features": torch.rand(1, config.prediction_length, config.num_time_features),
    }


def image(_: torch.nn.Module) -> Inputs:
    return {"pixel_values": torch.rand(1, 3, IMAGE, IMAGE)}


def image_and_text(model: Any, **pixels: torch.Tensor) -> Inputs:
    """As many placeholders as the model makes features of an image."""
    pixels = pixels or image(model)
    with torch.no_grad():
        features = model.get_image_features(**pixels)
    count = _rows(getattr(features, "pooler_output", features))
    ids = torch.cat([_tokens(2), torch.full((1, count), PLACEHOLDER), _tokens(2)], dim=1)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **pixels}


def images_and_text(model: Any) -> Inputs:
    """Images have a dimension of their own."""
    return image_and_text(model, pixel_values=torch.rand(1, 1, 3, IMAGE, IMAGE))


def sized_image_and_text(model: Any) -> Inputs:
    return image_and_text(model, **image(model), image_sizes=torch.tensor([[IMAGE, IMAGE]]))


def tiles_and_text(model: Any) -> Inputs:
    """An image as a whole and as its one tile."""
    return image_and_text(
        model, pixel_values=torch.rand(1, 2, 3, IMAGE, IMAGE), image_sizes=torch.tensor([[IMAGE, IMAGE]])
    )


def patches_and_text(model: Any) -> Inputs:
    """Flattened patches, and which tokens stand for them."""
    side = IMAGE // PATCH
    pixels = {
        "pixel_values": torch.rand(side * side, 3 * 2 * PATCH * PATCH),
        "image_grid_thw": torch.tensor([[1, side, side]]),
    }
    inputs = image_and_text(model, **pixels)
    return {**inputs, "mm_token_type_ids": (inputs["input_ids"] == PLACEHOLDER).int()}


def patches(model: Any) -> Inputs:
    """Flattened patches of an image, and a text of the length that the model wants."""
    side = IMAGE // PATCH
    return {
        "input_ids": _tokens(model.config.text_config.max_position_embeddings),
        "pixel_values": torch.rand(1, side * side, 3 * PATCH * PATCH),
        "pixel_attention_mask": torch.ones(1, side * side, dtype=torch.long),
        "spatial_shapes": torch.tensor([[side, side]]),
    }


def image_and_caption(model: Any) -> Inputs:
    return {**image(model), **text(model)}


def image_and_task(model: Any) -> Inputs:
    return {**image(model), "task_inputs": _tokens(model.config.task_seq_len)}


def _rows(features: Any) -> int:
    """How many vectors a tensor, or a list of them, holds."""
    return sum(f.numel() // f.shape[-1] for f in ([features] if isinstance(features, torch.Tensor) else features))


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model by the name of its class, what its inputs are, and what is not usual about its config."""

    model: str
    inputs: Callable[[Any], Inputs]
    config: dict[str, Any] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32

    def build(self) -> Target:
        model_class = getattr(transformers, self.model)
        config = small(model_class.config_class, **{k: _copied(v) for k, v in self.config.items()})
        model = model_class(config).eval()
        inputs = self.inputs(model)
        return model.to(self.dtype), [{name: self._cast(value) for name, value in inputs.items()}]

    def _cast(self, value: Any) -> Any:
        floats = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.dtype) if floats else value


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value


def _tokens(count: int = TOKENS) -> torch.Tensor:
    """Tokens that are neither special ones nor placeholders."""
    return torch.randint(PLACEHOLDER + 1, VOCAB, (1, count))


def _half(model: str, inputs: Callable[[Any], Inputs] = seq2seq, **config: Any) -> Recipe:
    return Recipe(model, inputs, config, torch.float16)


#: Three maps of features: at the usual sizes the last of them would be one pixel.
_SWIN = {
    "depths": [1] * 3,
    "num_heads": [HEADS] * 3,
    "out_features": ["stage1", "stage2", "stage3"],
    "patch_size": 4,
    "window_size": 2,
}
_FOUR = {
    **_SWIN,
    "depths": [1] * 4,
    "num_heads": [HEADS] * 4,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
    "patch_size": 2,
}
_DETECTOR = {"backbone_config": _SWIN, "num_feature_levels": 3, "num_queries": 4}
_MROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}}
_SERIES = {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2, 3], "num_time_features": 1}

RECIPES = {
    "bart16": _half("BartForConditionalGeneration"),
    "bigbird_pegasus16": _half("BigBirdPegasusForConditionalGeneration", attention_type="original_full"),
    "blenderbot_small16": _half("BlenderbotSmallForConditionalGeneration"),
    "informer16": _half("InformerModel", series, **_SERIES),
    "led16": _half("LEDForConditionalGeneration", attention_window=16),
    "longt516": _half("LongT5Model", local_radius=4),
    "marian16": _half("MarianMTModel"),
    "mvp16": _half("MvpForConditionalGeneration"),
    "nllb_moe16": _half("NllbMoeForConditionalGeneration", num_experts=4),
    "time_series_transformer16": _half("TimeSeriesTransformerModel", series, **_SERIES),
    "aria": Recipe("AriaForConditionalGeneration", image_and_text, {"projector_patch_to_query_dict": {16: 4}}),
    "aya_vision": Recipe("AyaVisionForConditionalGeneration", image_and_text),
    "cohere2_vision": Recipe("Cohere2VisionForConditionalGeneration", image_and_text),
    "gemma3": Recipe("Gemma3ForConditionalGeneration", image_and_text, {"mm_tokens_per_image": 4}),
    "got_ocr2": Recipe(
        "GotOcr2ForConditionalGeneration",
        image_and_text,
        {"vision_config": {"output_channels": HIDDEN, "window_size": 2, "global_attn_indexes": [1]}},
    ),
    "internvl": Recipe("InternVLForConditionalGeneration", image_and_text),
    "llava": Recipe("LlavaForConditionalGeneration", image_and_text),
    "paligemma": Recipe(
        "PaliGemmaForConditionalGeneration", image_and_text, {"vision_config": {"projection_dim": HIDDEN}}
    ),
    "vipllava": Recipe("VipLlavaForConditionalGeneration", image_and_text, {"vision_feature_layers": [-1, -2]}),
    "video_llava": Recipe("VideoLlavaForConditionalGeneration", image_and_text),
    "llava_next": Recipe(
        "LlavaNextForConditionalGeneration", tiles_and_text, {"image_grid_pinpoints": [[IMAGE, IMAGE]]}
    ),
    "llava_next_video": Recipe(
        "LlavaNextVideoForConditionalGeneration", tiles_and_text, {"image_grid_pinpoints": [[IMAGE, IMAGE]]}
    ),
    "llava_onevision": Recipe(
        "LlavaOnevisionForConditionalGeneration", tiles_and_text, {"image_grid_pinpoints": [[IMAGE, IMAGE]]}
    ),
    "florence2": Recipe(
        "Florence2ForConditionalGeneration",
        image_and_text,
        {
            "vision_config": {
                "depths": [1] * 4,
                "embed_dim": [HIDDEN] * 4,
                "num_heads": [HEADS] * 4,
                "num_groups": [HEADS] * 4,
                "patch_size": [7, 3, 3, 3],
                "window_size": 4,
                "projection_dim": HIDDEN,
            }
        },
    ),
    "ultravbert": Recipe("UltraVBertModel", images_and_text),
    "idefics2": Recipe(
        "Idefics2ForConditionalGeneration", images_and_text, {"perceiver_config": {"resampler_n_latents": 4}}
    ),
    "idefics3": Recipe("Idefics3ForConditionalGeneration", images_and_text),
    "smolvlm": Recipe("SmolVLMForConditionalGeneration", images_and_text),
    "mistral3": Recipe("Mistral3ForConditionalGeneration", sized_image_and_text),
    "qwen2_vl": Recipe("Qwen2VLForConditionalGeneration", patches_and_text, {"text_config": _MROPE}),
    "qwen2_5_vl": Recipe(
        "Qwen2_5_VLForConditionalGeneration",
        patches_and_text,
        {"text_config": _MROPE, "vision_config": {"out_hidden_size": HIDDEN}},
    ),
    "qwen3_vl": Recipe(
        "Qwen3VLForConditionalGeneration", patches_and_text, {"vision_config": {"out_hidden_size": HIDDEN}}
    ),
    "qwen3_5": Recipe(
        "Qwen3_5ForConditionalGeneration",
        patches_and_text,
        {
            "text_config": {"layer_types": ["linear_attention", "full_attention"]},
            "vision_config": {"out_hidden_size": HIDDEN},
        },
    ),
    "siglip2": Recipe("Siglip2Model", patches, {"vision_config": {"num_patches": 16}}),
    "vits": Recipe("VitsModel", text, {"flow_size": HIDDEN, "upsample_initial_channel": HIDDEN}),
    "rt_detr_v2": Recipe(
        "RTDetrV2ForObjectDetection",
        image,
        {
            "backbone_config": {
                "hidden_sizes": [HIDDEN] * 4,
                "depths": [1] * 4,
                "out_features": ["stage2", "stage3", "stage4"],
            },
            "encoder_in_channels": [HIDDEN] * 3,
            "decoder_in_channels": [HIDDEN] * 3,
            "num_queries": 4,
        },
    ),
    "mm_grounding_dino": Recipe("MMGroundingDinoForObjectDetection", image_and_caption, _DETECTOR),
    "grounding_dino": Recipe("GroundingDinoForObjectDetection", image_and_caption, _DETECTOR),
    "d_fine": Recipe(
        "DFineForObjectDetection",
        image,
        {
            "backbone_config": {
                "stem_channels": [3, HIDDEN, HIDDEN],
                "stage_in_channels": [HIDDEN] * 4,
                "stage_mid_channels": [HIDDEN] * 4,
                "stage_out_channels": [HIDDEN] * 4,
                "stage_num_blocks": [1] * 4,
                "stage_numb_of_layers": [1] * 4,
                "hidden_sizes": [HIDDEN] * 4,
                "depths": [1] * 4,
                "out_features": ["stage2", "stage3", "stage4"],
            },
            "encoder_in_channels": [HIDDEN] * 3,
            "decoder_in_channels": [HIDDEN] * 3,
            "num_queries": 4,
        },
    ),
    "oneformer": Recipe("OneFormerForUniversalSegmentation", image_and_task, {"backbone_config": _FOUR}),
}


def __getattr__(name: str) -> Callable[[], Target]:
    """The recipes are attributes of this module, so that they are targets."""
    if name in RECIPES:
        return RECIPES[name].build
    raise AttributeError(name)
