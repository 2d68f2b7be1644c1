"""What counts as the same value."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from graphmend_lint.verify.worker.compare import EXACT, Closeness, compare, same_bits, save
from graphmend_lint.verify.worker.leaves import Leaf, detached, leaves_of

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (torch.tensor([NAN, 1.0]), torch.tensor([-NAN, 1.0]), True),
        (torch.tensor([0.0]), torch.tensor([-0.0]), False),
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, 2.0]), False),
        (torch.tensor(NAN, dtype=torch.bfloat16), torch.tensor(NAN, dtype=torch.bfloat16), True),
        (torch.tensor([1 + 2j, complex(NAN, 0)]), torch.tensor([1 + 2j, complex(NAN, 0)]), True),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.tensor([True]), torch.tensor([True]), True),
        (torch.ones(2, 2).t(), torch.ones(2, 2), True),
        (torch.empty(0), torch.empty(0), True),
        (torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2).to(torch.float8_e4m3fn), True),
    ],
)
def test_same_bits(one: torch.Tensor, two: torch.Tensor, same: bool) -> None:
    assert same_bits(one, two) is same


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class Output:
    logits: torch.Tensor
    extra: Any = None


def differences(folder: Path, one: Any, two: Any, closeness: Closeness = EXACT) -> list[str]:
    save(folder / "one.pt", [{"outputs": detached(one)}])
    save(folder / "two.pt", [{"outputs": detached(two)}])
    result: list[str] = compare(folder / "one.pt", folder / "two.pt", closeness)["differences"]
    return result


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (
            torch.ones(2),
            torch.ones(2).double(),
            "torch.float32 [2] on cpu, and Tensor torch.float64 [2] on cpu",
        ),
        (torch.ones(2), torch.ones(2, 1), "[2, 1]"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "other structure"),
        ([1, 2], (1, 2), "list, and tuple"),
        (1, True, "int 1, and bool True"),
        (OrderedDict(a=None), OrderedDict(a=0), "['a']: NoneType None, and int 0"),
        (Output(torch.ones(1)), Output(torch.zeros(1)), ".logits: values differ by up to 1"),
        (Slotted([torch.ones(1)]), Slotted([torch.zeros(1)]), ".value[0]: values differ"),
        ({"a": torch.ones(1)}, {}, "other structure (['a'])"),
    ],
)
def test_a_difference_names_its_place(tmp_path: Path, one: Any, two: Any, words: str) -> None:
    found = differences(tmp_path, one, two)
    assert len(found) == 1
    assert words in found[0]


def test_equal_objects_have_no_difference(tmp_path: Path) -> None:
    value = Output(torch.tensor([NAN]), {"cache": [Slotted((torch.ones(2), "text", {3}))]})
    assert differences(tmp_path, value, value) == []


def test_a_tolerance_is_for_floating_point_only(tmp_path: Path) -> None:
    close = Closeness(exact=False, tolerance=0.1)
    assert differences(tmp_path, torch.tensor(1.0), torch.tensor(1.05), close) == []
    assert differences(tmp_path, torch.tensor(1.0), torch.tensor(1.5), close) != []
    assert differences(tmp_path, torch.tensor(10), torch.tensor(11), close) != []
    assert differences(tmp_path, torch.tensor([NAN]), torch.tensor([0.0]), close) != []


def test_more_state_is_a_remark_and_less_is_a_difference(tmp_path: Path) -> None:
    some, more = [Leaf(" a", "int 1")], [Leaf(" a", "int 1"), Leaf(" b", "int 2")]
    save(tmp_path / "some.pt", [{"state": some}])
    save(tmp_path / "more.pt", [{"state": more}])
    added = compare(tmp_path / "some.pt", tmp_path / "more.pt", EXACT)
    assert (added["differences"], added["remarks"]) == ([], ["the fixed version keeps more state: b"])
    lost = compare(tmp_path / "more.pt", tmp_path / "some.pt", EXACT)
    assert lost["differences"] == ["call 1, state: other structure ( b)"]


def test_a_cycle_ends() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert [leaf.value for leaf in leaves_of(ring)] == ["list", "int 1", "<the object around it>"]
