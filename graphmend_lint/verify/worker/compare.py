"""Compares what two runs produced, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphmend_lint.verify.worker.leaves import Leaf

# Absolute and relative: fused and reordered kernels round differently, more so in the short formats.
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SHOWN = 5

Leaves = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Closeness:
    """Bit for bit where `exact`; else within `tolerance`, or within TOLERANCE of the dtype where that is
    None.
    """

    exact: bool
    tolerance: float | None = None


EXACT = Closeness(exact=True)


def save(place: Path, groups: list[dict[str, list[Leaf]]]) -> None:
    """Saves what each call left behind: named groups of leaves (outputs, gradients, ...)."""
    torch.save([stored(call) for call in groups], place)


def stored(call: dict[str, list[Leaf]]) -> dict[str, Leaves]:
    """What a call left behind, as it is compared."""
    return {name: [_stored(leaf) for leaf in leaves] for name, leaves in call.items()}


def compare(first: Path, second: Path, closeness: Closeness) -> dict[str, Any]:
    """The first few differences in words, and the largest difference of two numbers."""
    one, two = _load(first), _load(second)
    differences: list[str] = []
    remarks: dict[str, None] = {}
    largest = 0.0
    if len(one) != len(two):
        differences.append(f"{len(one)} calls, and {len(two)}")
    for index, (mine, other) in enumerate(zip(one, two, strict=False)):
        remarks |= dict.fromkeys(_remarks(mine, other))
        found, distance = compare_calls(mine, other, closeness)
        differences += [f"call {index + 1}, {text}" for text in found]
        largest = max(largest, distance)
    return {"equal": not differences, "differences": differences[:_SHOWN], "largest": largest, "remarks": [*remarks]}


def compare_calls(one: dict[str, Leaves], two: dict[str, Leaves], closeness: Closeness) -> tuple[list[str], float]:
    """The differences between what two calls left behind, in words, and the largest of two numbers."""
    differences: list[str] = []
    largest = 0.0
    for group in _groups(one, two, closeness):
        mine, other = one.get(group, []), two.get(group, [])
        if group == "state":
            other = _known(mine, other)
        found, distance = _compare_leaves(mine, other, closeness)
        differences += [f"{group}{text}" for text in found]
        largest = max(largest, distance)
    return differences, largest


def _known(mine: Leaves, other: Leaves) -> Leaves:
    """What the first has too. State that is made earlier, or in any case, is a remark and no difference."""
    paths = {path for path, _ in mine}
    return [leaf for leaf in other if leaf[0] in paths]


def _remarks(one: dict[str, Leaves], two: dict[str, Leaves]) -> Iterator[str]:
    """What a person should know although results are the same: more state, and state that no longer shares its
    memory, so that a change in place of one name would not reach the other.
    """
    known = {path for path, _ in one.get("state", [])}
    yield from (f"the fixed version keeps more state:{path}" for path, _ in two.get("state", []) if path not in known)
    before, after = dict(one.get("sharing", [])), dict(two.get("sharing", []))
    for path, owner in before.items():
        if path in after and after[path] != owner:
            yield f"the memory{path} was {owner}, and is {after[path]}"


def _groups(one: dict[str, Leaves], two: dict[str, Leaves], closeness: Closeness) -> list[str]:
    """Backends other than the exact one draw random numbers, and share memory, in their own way."""
    left_out = ("sharing",) if closeness.exact else ("sharing", "random", "memory")
    return [group for group in (*one, *(two.keys() - one.keys())) if group not in left_out]


def _load(place: Path) -> list[dict[str, Leaves]]:
    saved: list[dict[str, Leaves]] = torch.load(place, weights_only=True, map_location="cpu")
    return saved


def _stored(leaf: Leaf) -> tuple[str, Any]:
    if not isinstance(leaf.value, torch.Tensor):
        return leaf.path, leaf.value
    tensor = leaf.value.detach()
    form = f"{type(leaf.value).__name__} {tensor.dtype} {list(tensor.shape)} on {tensor.device.type}"
    dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return leaf.path, (form, torch.Tensor(dense.cpu()) if type(dense) is torch.nn.Parameter else dense.cpu())


def _compare_leaves(one: Leaves, two: Leaves, closeness: Closeness) -> tuple[list[str], float]:
    differences, largest = [], 0.0
    if [path for path, _ in one] != [path for path, _ in two]:
        return [f": other structure ({_first_odd(one, two)})"], 0.0
    for (path, mine), (_, other) in zip(one, two, strict=True):
        if isinstance(mine, str) or isinstance(other, str):
            if mine != other:
                differences.append(f"{path}: {_word(mine)}, and {_word(other)}")
        elif mine[0] != other[0]:
            differences.append(f"{path}: {mine[0]}, and {other[0]}")
        else:
            text, distance = _compare_tensors(mine[1], other[1], closeness)
            largest = max(largest, distance)
            if text:
                differences.append(f"{path}: {text}")
    return differences, largest


def _first_odd(one: Leaves, two: Leaves) -> str:
    mine, other = [path for path, _ in one], [path for path, _ in two]
    odd = [path for path in (*mine, *other) if (path in mine) != (path in other)]
    return odd[0] or "the value itself" if odd else "order"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else str(value[0])


def _compare_tensors(one: torch.Tensor, two: torch.Tensor, closeness: Closeness) -> tuple[str, float]:
    if same_bits(one, two):
        return "", 0.0
    distance = _distance(one, two)
    if not closeness.exact and _close(one, two, closeness):
        return "", distance
    return f"values differ by up to {distance:.3g}", distance


def same_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    """True if the values are the same bit for bit; any nan is the same as any other, 0.0 is not -0.0."""
    if one.is_complex():
        one, two = torch.view_as_real(one), torch.view_as_real(two)
    if not one.is_floating_point():
        return torch.equal(one, two)
    bits = _BITS[one.element_size()]
    same = one.contiguous().view(bits) == two.contiguous().view(bits)
    return bool((same | (_nan(one) & _nan(two))).all())


def _nan(tensor: torch.Tensor) -> torch.Tensor:
    # The 8-bit formats have no isnan of their own.
    return tensor.float().isnan() if tensor.element_size() == 1 else tensor.isnan()


def _close(one: torch.Tensor, two: torch.Tensor, closeness: Closeness) -> bool:
    if not (one.is_floating_point() or one.is_complex()):
        return False
    real = torch.view_as_real(one).dtype if one.is_complex() else one.dtype
    limit = TOLERANCE.get(real, 1e-2) if closeness.tolerance is None else closeness.tolerance
    return torch.allclose(_wide(one), _wide(two), rtol=limit, atol=limit, equal_nan=True)


def _distance(one: torch.Tensor, two: torch.Tensor) -> float:
    difference = (_wide(one) - _wide(two)).abs()
    finite = difference[torch.isfinite(difference)]
    return float(finite.max()) if finite.numel() else float("inf")


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
