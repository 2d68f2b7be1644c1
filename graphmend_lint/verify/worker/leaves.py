"""Any value as a flat list of named leaves, so that two of them can be compared place by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout)


@dataclass(frozen=True, slots=True)
class Leaf:
    """`value` is a tensor, or a text that stands for a plain value, a type or a function."""

    path: str
    value: torch.Tensor | str


def leaves_of(value: Any, path: str = "") -> Iterator[Leaf]:
    """The leaves of containers, model outputs, caches and any object with attributes, in a fixed order."""
    yield from _walk(value, path, ())


def _walk(value: Any, path: str, above: tuple[int, ...]) -> Iterator[Leaf]:
    if isinstance(value, torch.Tensor):
        yield Leaf(path, value)
    elif isinstance(value, _PLAIN):
        yield Leaf(path, f"{type(value).__name__} {value!r}")
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        yield Leaf(path, f"{value.__module__}.{value.__qualname__}")
    elif id(value) in above:
        yield Leaf(path, "<the object around it>")
    else:
        yield Leaf(path, type(value).__qualname__)
        for name, part in _parts(value):
            yield from _walk(part, f"{path}{name}", (*above, id(value)))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from ((f"[{index}]", part) for index, part in enumerate(sorted(value, key=repr)))
    elif isinstance(value, torch.nn.Module):
        # Its state is compared by name, once, where it is the target's own.
        yield from ()
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        yield from ((".dtype", str(value.dtype)), (".shape", str(value.shape)), (".bytes", value.tobytes()))
    else:
        yield from ((f".{name}", part) for name, part in sorted(_attributes(value).items()))


def _attributes(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                found[name] = getattr(value, name)
    return found


def is_data(value: Any) -> bool:
    """True for plain values, tensors, and containers of nothing else."""
    if isinstance(value, Mapping):
        return all(is_data(part) for part in (*value.keys(), *value.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_data(part) for part in value)
    return isinstance(value, (*_PLAIN, torch.Tensor))


def detached(value: Any, path: str = "") -> list[Leaf]:
    """The leaves as they are now: later changes in place do not reach them."""
    return [
        Leaf(leaf.path, leaf.value.detach().clone() if isinstance(leaf.value, torch.Tensor) else leaf.value)
        for leaf in leaves_of(value, path)
    ]
