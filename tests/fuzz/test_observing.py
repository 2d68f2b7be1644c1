"""What a wrong rewrite changes is seen."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.fuzz.observing import difference, observe
from tests.fuzz.programs import FRAME, Program

IF_SUM = "if x.sum() > 0:"


def program(*lines: str, dtype: str = "float32") -> Program:
    """A program with this body."""
    body = "\n".join("        " + line for line in lines)
    parameters = "x: torch.Tensor, y: torch.Tensor, n: int, flag: bool"
    return Program(FRAME.format(decorator="", parameters=parameters, returns="", body=body), (dtype, dtype), 0)


def seen(before: Program, after: Program) -> str:
    return difference(observe(before.source, before), observe(after.source, before))


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param(
            [IF_SUM, "    x = x + 1", "else:", "    x = x + 2", "return x"],
            ["return torch.where(x.sum() > 0, x + 2, x + 1)"],
            "result",
            id="wrong-side",
        ),
        pytest.param(
            [IF_SUM, "    x = x * 1.0", "return x"],
            ["return torch.where(x.sum() > 0, x, x)"],
            "shared",
            id="lost-alias",
        ),
        pytest.param(
            ["z = x + 1", IF_SUM, "    z = z.half()", "return z"],
            ["z = x + 1", "return torch.where(x.sum() > 0, z.half(), z)"],
            "result",
            id="promoted-dtype",
        ),
        pytest.param(
            ["z = x + 1", "if z.sum() > 0:", "    z = z.sum()", "return z"],
            ["z = x + 1", "return torch.where(z.sum() > 0, z.sum(), z)"],
            "result",
            id="broadcast",
        ),
        pytest.param(
            ["z = x * 1", IF_SUM, "    z = -z", "return z"],
            ["return torch.where(x.sum() > 0, 0 - x, x * 1)"],
            "result",
            id="sign-of-zero",
        ),
        pytest.param(
            ["if torch.isnan(x).any():", "    return x * 0", "return x * 2"],
            ["return x * 2"],
            "result",
            id="nan",
        ),
        pytest.param(
            ["z = x + 1", IF_SUM, "    z = z[:1]", "return z"],
            ["z = x + 1", "return z[:1] if x.shape and x.sum() > 0 else z"],
            "error",
            id="exception-gone",
        ),
        pytest.param(
            [IF_SUM, "    raise ValueError('a')", "return x"],
            [IF_SUM, "    raise ValueError('b')", "return x"],
            "error",
            id="exception-text",
        ),
        pytest.param([IF_SUM, "    print(x.shape)", "return x"], ["print(x.shape)", "return x"], "said", id="message"),
        pytest.param(
            ["z = x", IF_SUM, "    z = x + 1", "    x.add_(1)", "return z"],
            ["z = torch.where(x.sum() > 0, x + 1, x)", "x.add_(1)", "return z.clone()"],
            "result|arguments|shared",
            id="argument-changed",
        ),
        pytest.param(
            [IF_SUM, "    self.state = self.state + 1", "return x * 2"],
            ["self.state.copy_(torch.where(x.sum() > 0, self.state + 1, self.state))", "return x * 2"],
            "state",
            id="buffer-stored-in-place",
        ),
        pytest.param(
            [IF_SUM, "    self.count += 1", "return x * 2"],
            ["self.count += 1", "return x * 2"],
            "state",
            id="attribute",
        ),
        pytest.param(
            ["z = x * 2", IF_SUM, "    z = z + torch.rand_like(z) * 0", "return z"],
            ["return torch.where(x.sum() > 0, x * 2 + torch.rand_like(x) * 0, x * 2)"],
            "random|result",
            id="random-numbers",
        ),
        pytest.param(
            ["z = x * 2", IF_SUM, "    z = self.lin(x)", "return z * 1"],
            ["return torch.where(x.sum() > 0, self.lin(x), x * 2) * 1"],
            "gradients",
            id="gradient-none-or-zero",
        ),
        pytest.param(
            ["z = x * 0.5", "if (x > 0).all():", "    z = torch.sqrt(x)", "return z"],
            ["return torch.where((x > 0).all(), torch.sqrt(x), x * 0.5)"],
            "gradients",
            id="nan-gradient",
        ),
        pytest.param(
            ["z = x + 1", IF_SUM, "    z = z.detach()", "return z"],
            ["z = x + 1", "return torch.where(x.sum() > 0, z.detach(), z)"],
            "result",
            id="requires-grad",
        ),
        pytest.param(
            ["z = x + 1", IF_SUM, "    z = self.state * 1", "else:", "    z = self.state", "return z"],
            ["return self.state * 1"],
            "shared|after",
            id="shares-memory",
        ),
    ],
)
def test_a_wrong_rewrite_is_seen(before: list[str], after: list[str], field: str) -> None:
    found = seen(program(*before), program(*after))
    assert found, "nothing differs"
    assert found.partition(":")[0].rpartition(" ")[2] in field.split("|"), found


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_a_right_rewrite_is_the_same(dtype: str) -> None:
    before = program("z = x + 1", IF_SUM, "    z = torch.relu(z)", "return z * 2", dtype=dtype)
    after = program("z = x + 1", "z = torch.where(x.sum() > 0, torch.relu(z), z)", "return z * 2", dtype=dtype)
    assert not seen(before, after)


def test_a_program_is_the_same_as_itself() -> None:
    for lines in (
        ["return x"],
        ["x.mul_(2)", "return (x, self.state)"],
        ["return torch.rand(2) + x"],
        ["raise KeyError"],
    ):
        assert not seen(program(*lines), program(*lines))
