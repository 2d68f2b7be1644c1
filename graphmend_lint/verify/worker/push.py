"""Other values for the tensors of a call: those that make a predicate take its other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from graphmend_lint.verify.worker.leaves import leaves_of

#: Changes the tensors of a call's arguments in place.
Push = Callable[[Any], None]
_Change = Callable[[torch.Tensor], torch.Tensor]

# Beyond that many tensors, one is not changed alone.
_MOST_ALONE = 6


def pushes(values: Any) -> Iterator[tuple[str, Push]]:
    """How the arguments are changed, in words and as a function: not at all, all tensors together, each alone."""
    yield "its own arguments", lambda _: None
    tensors = [(leaf.path, leaf.value) for leaf in leaves_of(values) if isinstance(leaf.value, torch.Tensor)]
    kinds = [kind for kind in _CHANGES if any(_kind_of(tensor) == kind for _, tensor in tensors)]
    for kind in kinds:
        for name, change in _CHANGES[kind]:
            yield f"{kind} tensors {name}", _push(change, kind, None)
    if len(tensors) < 2:
        return
    for path, tensor in tensors[:_MOST_ALONE]:
        kind = _kind_of(tensor)
        for name, change in _CHANGES.get(kind, ()):
            yield f"{_name_of(path)} {name}", _push(change, kind, path)


def _push(change: _Change, kind: str, path: str | None) -> Push:
    def push(values: Any) -> None:
        for leaf in leaves_of(values):
            tensor = leaf.value
            if isinstance(tensor, torch.Tensor) and _kind_of(tensor) == kind and path in (None, leaf.path):
                _fill(tensor, change)

    return push


def _fill(tensor: torch.Tensor, change: _Change) -> None:
    """In place, so that what shares memory goes on sharing it."""
    with torch.no_grad():
        try:
            tensor.copy_(change(tensor).to(tensor.dtype))
        except (RuntimeError, NotImplementedError):
            # An expanded tensor has one place for several values; it stays as it is.
            return


def _kind_of(tensor: torch.Tensor) -> str:
    if tensor.dtype is torch.bool:
        return "bool"
    if tensor.is_floating_point() or tensor.is_complex():
        return "floating"
    # An index out of range is an exception on a CPU, and ruins the process on a GPU.
    return "integer" if tensor.device.type == "cpu" else "index"


def _name_of(path: str) -> str:
    return path.replace("['", "", 1).replace("']", "", 1)


def _with(value: float) -> _Change:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.detach().clone()
        if changed.numel():
            changed.view(-1)[0] = value
        return changed

    return change


def _alternating(tensor: torch.Tensor) -> torch.Tensor:
    signs = torch.ones_like(tensor).flatten()
    signs[::2] = -1
    return signs.view(tensor.shape) * 1e4


_PLAIN: tuple[tuple[str, _Change], ...] = (("zero", torch.zeros_like), ("one", torch.ones_like))
_CHANGES: dict[str, tuple[tuple[str, _Change], ...]] = {
    "floating": (
        *_PLAIN,
        ("negated", torch.neg),
        ("scaled by 1e-6", lambda tensor: tensor * 1e-6),
        ("scaled by 1e4", lambda tensor: tensor * 1e4),
        ("scaled by 1e30", lambda tensor: tensor * 1e30),
        ("of both signs and large", _alternating),
        ("with inf", _with(float("inf"))),
        ("with -inf", _with(float("-inf"))),
        ("with nan", _with(float("nan"))),
    ),
    "integer": (
        *_PLAIN,
        ("negated", torch.neg),
        ("scaled by 1000", lambda tensor: tensor * 1000),
        ("plus one", lambda tensor: tensor + 1),
    ),
    "index": _PLAIN,
    "bool": (*_PLAIN, ("inverted", torch.logical_not)),
}
