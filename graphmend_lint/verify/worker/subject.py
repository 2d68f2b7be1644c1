"""The target, built: the model, its input sets, and the tensors in both that must be the same in the two
arms.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map

from graphmend_lint.verify.worker.job import Job, Mismatch, StepFailure
from graphmend_lint.verify.worker.leaves import leaves_of

InputSet = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A model (or function) and its input sets, as one run uses them."""

    model: Callable[..., Any]
    inputs: list[InputSet]

    @property
    def module(self) -> torch.nn.Module | None:
        return self.model if isinstance(self.model, torch.nn.Module) else None

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters, buffers (non-persistent ones too) and tensors kept as plain attributes, by name."""
        return dict(state_of(self.module)) if self.module is not None else {}

    def input_tensors(self) -> dict[str, torch.Tensor]:
        return {leaf.path: leaf.value for leaf in leaves_of(self.inputs) if isinstance(leaf.value, torch.Tensor)}


def seed(number: int) -> None:
    """Starts every random stream that a model may draw from."""
    torch.manual_seed(number)
    random.seed(number)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(number % 2**32)


def build(job: Job) -> Subject:
    """Calls the target and puts what it returned on the wanted device, in the wanted dtype and mode."""
    options = job.options
    seed(options["seed"])
    try:
        made = job.callable()()
    except Exception as error:
        text = (str(error).splitlines() or [""])[0]
        raise StepFailure(f"target {job.attribute} raised {type(error).__name__}: {text}") from error
    subject = _subject(made)
    device = device_of(options["device"])
    dtype = _dtype(options["dtype"])
    if subject.module is not None:
        subject.module.to(device=device, dtype=dtype)
        subject.module.train(options["train"])
    inputs = [tree_map(lambda value: _placed(value, device, dtype), pair) for pair in subject.inputs]
    return Subject(subject.model, inputs)


def build_same(job: Job) -> Subject:
    """Builds the target and gives it the weights and inputs that the original arm saved; raises Mismatch."""
    subject = build(job)
    saved = torch.load(job.shared, weights_only=True)
    _restore("state", saved["state"], subject.state())
    _restore("input", saved["inputs"], subject.input_tensors())
    return subject


def save_shared(job: Job, subject: Subject) -> None:
    """Saves what `build_same` restores."""
    plain = {
        "state": {name: tensor.detach() for name, tensor in subject.state().items()},
        "inputs": {path: tensor.detach() for path, tensor in subject.input_tensors().items()},
    }
    torch.save(plain, job.shared)


def device_of(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise StepFailure(f"unknown device {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise StepFailure("device cuda was asked for, but torch sees no GPU")
    return device


def _dtype(name: str | None) -> torch.dtype | None:
    if name is None:
        return None
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise StepFailure(f"unknown dtype {name!r}")
    return dtype


def _placed(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    wanted = dtype if value.is_floating_point() else None
    if value.device.type == device.type and wanted in (None, value.dtype):
        return value
    moved = value.detach().to(device=device, dtype=wanted)
    return moved.requires_grad_(value.requires_grad)


def _subject(made: Any) -> Subject:
    if not isinstance(made, tuple) or len(made) != 2:
        raise StepFailure("the target must return (model, inputs)")
    model, inputs = made
    if not callable(model):
        raise StepFailure(f"the target returned a model that cannot be called ({type(model).__name__})")
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise StepFailure("the target's inputs must be a list of input sets, with at least one")
    return Subject(model, [_input_set(given) for given in inputs])


def _input_set(given: Any) -> InputSet:
    if isinstance(given, dict):
        return (), given
    if isinstance(given, tuple):
        if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict):
            return given[0], given[1]
        return given, {}
    raise StepFailure(f"an input set is a tuple, a dict, or a pair of both, not {type(given).__name__}")


def state_of(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers (non-persistent ones too) and tensors kept as plain attributes, by name."""
    # Tied tensors appear under each name: a fix that unties them is seen.
    for name, module in model.named_modules(remove_duplicate=False):
        kept = {**module._parameters, **module._buffers, **vars(module)}
        for attribute, value in kept.items():
            if isinstance(value, torch.Tensor) and not is_lazy(value):
                yield (f"{name}.{attribute}" if name else attribute), value


def _restore(what: str, saved: dict[str, torch.Tensor], mine: dict[str, torch.Tensor]) -> None:
    if missing := saved.keys() - mine.keys():
        raise Mismatch(f"{what} {min(missing)} is missing")
    if added := mine.keys() - saved.keys():
        raise Mismatch(f"{what} {min(added)} is new")
    with torch.no_grad():
        for name, tensor in mine.items():
            _copy(f"{what} {name}", saved[name], tensor)


def _copy(name: str, source: torch.Tensor, target: torch.Tensor) -> None:
    """Fills the tensor in place: what shares its storage goes on sharing it."""
    if source.shape != target.shape or source.dtype != target.dtype:
        raise Mismatch(f"{name} is {_form(target)}, was {_form(source)}")
    if not torch.equal(source.to(target.device), target):
        target.copy_(source)


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
