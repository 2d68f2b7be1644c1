"""One call of a target, and everything that it leaves behind."""

from __future__ import annotations

import copy
import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from graphmend_lint.verify.worker.job import Job, StepFailure
from graphmend_lint.verify.worker.leaves import Leaf, detached, is_data, leaves_of
from graphmend_lint.verify.worker.subject import InputSet, Subject, device_of, seed, state_of

_NO_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)

Left = dict[str, list[Leaf]]
Raised = dict[str, str]


def call(job: Job, subject: Subject, function: Callable[..., Any], pair: InputSet) -> tuple[Left, Raised | None]:
    """One call with inputs of its own: what it leaves behind, and what it raised."""
    args, kwargs = copied(pair)
    output, raised = None, None
    left: Left = {}
    seed(job.options["seed"])
    with torch.set_grad_enabled(job.options["grad"]):
        try:
            output = function(*args, **kwargs)
            left["outputs"] = detached(output)
            if job.options["grad"]:
                left["autograd"] = _history(output)
                left["gradients"] = _gradients(subject, output, (args, kwargs))
        except Exception as error:
            check_memory(error)
            raised = described(error)
    left["random"] = detached(random_state(job))
    left["inputs"] = detached((args, kwargs))
    left["state"] = changing_state(subject.module)
    left |= shared_memory(subject.state(), (args, kwargs), output)
    return left, raised


def described(error: Exception) -> Raised:
    """An exception as it is compared."""
    return {"type": f"{type(error).__module__}.{type(error).__qualname__}", "text": str(error)}


def check_memory(error: Exception) -> None:
    """Raises StepFailure where the machine, not the model, is what failed."""
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error))):
        raise StepFailure("out of memory") from error


def changing_state(module: torch.nn.Module | None) -> list[Leaf]:
    """Buffers and plain attributes of a model: what a call may change without training it."""
    if module is None:
        return []
    tensors = {name: value for name, value in state_of(module) if not isinstance(value, torch.nn.Parameter)}
    return [
        Leaf(f" {leaf.path}", leaf.value)
        for name, value in (*tensors.items(), *_attributes_of(module))
        for leaf in detached(value, name)
    ]


def _attributes_of(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Numbers, texts and containers kept as attributes. Other objects are the model's own affair."""
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if not name.startswith("_") and not isinstance(value, torch.Tensor) and is_data(value):
                yield f"{prefix}.{name}" if prefix else name, value


def shared_memory(state: dict[str, torch.Tensor], inputs: Any, output: Any) -> Left:
    """Whose memory each tensor has: of the output and the inputs ("memory"), and of the model ("sharing")."""
    owners: dict[int, str] = {}
    found: Left = {"memory": [], "sharing": []}
    for what, name, tensor in _tensors(state, inputs, output):
        place = _place_of(tensor)
        owner = owners.setdefault(place, f"{what}{name}") if place else ""
        own = owner in ("", f"{what}{name}")
        group = "sharing" if what == "state " else "memory"
        found[group].append(Leaf(f" of {what}{name}", "its own" if own else f"that of {owner}"))
    return found


def _tensors(state: dict[str, torch.Tensor], inputs: Any, output: Any) -> Iterator[tuple[str, str, torch.Tensor]]:
    yield from (("state ", name, tensor) for name, tensor in state.items())
    for what, value in (("input", inputs), ("output", output)):
        yield from ((what, leaf.path, leaf.value) for leaf in leaves_of(value) if isinstance(leaf.value, torch.Tensor))


def _place_of(tensor: torch.Tensor) -> int:
    """The address of a tensor's memory; 0 where it has none that can be told."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def copied(value: Any) -> Any:
    """A deep copy, made in spite of tensors that have a history of computation."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return _copied_by_leaf(value)


def _copied_by_leaf(value: Any) -> Any:
    memo: dict[int, Any] = {
        id(leaf.value): leaf.value.detach().clone().requires_grad_(leaf.value.requires_grad)
        for leaf in leaves_of(value)
        if isinstance(leaf.value, torch.Tensor)
    }
    try:
        return copy.deepcopy(value, memo)
    except Exception:
        # Not every object can be copied; both arms then hand on the same one each time.
        return value


def _history(output: Any) -> list[Leaf]:
    """Whether each tensor of the output takes part in differentiation."""
    return [
        Leaf(f" of output{leaf.path}", "requires grad" if leaf.value.requires_grad else "requires no grad")
        for leaf in leaves_of(output)
        if isinstance(leaf.value, torch.Tensor)
    ]


def _gradients(subject: Subject, output: Any, inputs: InputSet) -> list[Leaf]:
    """The gradients of the sum of all outputs, in parameters and inputs; they are cleared afterwards."""
    results = [leaf.value for leaf in leaves_of(output) if isinstance(leaf.value, torch.Tensor)]
    losses = [result.sum() for result in results if result.requires_grad and result.is_floating_point()]
    if not losses:
        return []
    torch.autograd.backward(losses)
    owners = subject.state() | {
        leaf.path: leaf.value for leaf in leaves_of(inputs, "input ") if isinstance(leaf.value, torch.Tensor)
    }
    found = {name: tensor.grad for name, tensor in owners.items() if tensor.is_leaf}
    kept = detached(found)
    for tensor in owners.values():
        if tensor.is_leaf:
            tensor.grad = None
    return kept


def random_state(job: Job) -> dict[str, Any]:
    """Where each random stream stands."""
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": repr(random.getstate())}
    if device_of(job.options["device"]).type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state()
    if numpy := sys.modules.get("numpy"):
        state["numpy"] = numpy.random.get_state()
    return state
