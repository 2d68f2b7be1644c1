"""Small models from the name of a config."""

from __future__ import annotations

import pytest
import torch

from graphmend_lint.verify.models import small


@pytest.mark.parametrize(
    ("config", "model"),
    [
        ("T5Config", "T5ForConditionalGeneration"),
        ("WhisperConfig", "WhisperForConditionalGeneration"),
        ("LlamaConfig", "LlamaForCausalLM"),
        ("ViTConfig", "ViTModel"),
    ],
)
def test_a_config_is_enough(config: str, model: str) -> None:
    made, inputs = small(config)
    assert type(made).__name__ == model
    assert sum(parameter.numel() for parameter in made.parameters()) < 500_000
    with torch.no_grad():
        made(**inputs[0])


def test_sizes_model_and_inputs_can_be_given() -> None:
    tokens = {"input_ids": torch.zeros(1, 3, dtype=torch.long)}
    made, inputs = small("BertConfig", model_class="BertModel", inputs=[tokens], num_hidden_layers=1)
    assert type(made).__name__ == "BertModel"
    assert inputs == [tokens]
    assert len(made.get_submodule("encoder.layer")._modules) == 1


@pytest.mark.parametrize(
    ("config", "says"),
    [("NoSuchConfig", "has no NoSuchConfig"), ("Wav2Vec2Config", "input_values is not known: give inputs")],
)
def test_what_is_not_known_is_said(config: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        small(config)
