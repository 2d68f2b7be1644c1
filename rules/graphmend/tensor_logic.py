"""GM104: `and`, `or` and `not` of tensors end the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class TensorLogic(rule.GraphRule):
    """
    ## What it does
    Finds `and`, `or` and `not` whose operands are tensors and whose result is a value, in code that `torch.compile`
    traces. In the test of a branch they belong to `tensor-branch` (GM101).

    ## Why is this bad
    Python asks the first operand for its truth before it looks at the second: Dynamo compiles what it has, asks the
    tensor in plain Python and starts a new graph (GB0170). `not` of a tensor makes Dynamo give up the whole function.

    ## Example
    ```python
    @torch.compile
    def is_broken(x: torch.Tensor):
        return torch.isnan(x).any() or torch.isinf(x).any()
    ```

    ## Use instead
    ```python
    @torch.compile
    def is_broken(x: torch.Tensor):
        return torch.isnan(x).any() | torch.isinf(x).any()
    ```

    ## Fix safety
    Safe where each operand is known to be one boolean in a tensor of no dimensions, all are on one device, and those
    that used to be skipped cannot raise, change anything or draw random numbers: whichever operand Python gives, it
    has the value of `&` or `|`. `not` gives a Python bool, which a tensor is not: it is reported and left.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    - [torch.logical_and](https://docs.pytorch.org/docs/stable/generated/torch.logical_and.html)
    """

    CODE, SINCE, FIX = "GM104", "0.2", "safe"
    TITLE, CATEGORY = "`and`, `or` or `not` of tensors ends the graph", "control flow"
    TAGS = {"gm104", "branches"}
    BREAKS, TORCH = ("GB0170",), ">=2.0"
    TRANSFORM = "where"
    OPTIONS = ()

    VALID = [
        Valid(
            """
            import torch

            @torch.compile
            def picked(x: torch.Tensor, flag: bool, name: str | None) -> torch.Tensor:
                wanted = name or "all"
                return x.any() if flag and wanted == "all" else x.all()
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch

            @torch.compile
            def is_broken(x: torch.Tensor) -> torch.Tensor:
                return torch.isnan(x).any() or torch.isinf(x).any()
            """,
            expected_replacement="""
            import torch

            @torch.compile
            def is_broken(x: torch.Tensor) -> torch.Tensor:
                return torch.isnan(x).any() | torch.isinf(x).any()
            """,
        ),
    ]

    MATCHER = m.BooleanOperation() | m.UnaryOperation()

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """The expression is rewritten as a whole: see `rewrite.select`."""
        return node
