"""GM102: a conditional expression on tensor data ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class TensorChoice(rule.GraphRule):
    """
    ## What it does
    Finds `a if P else b` where `P` depends on tensor data, in code that `torch.compile` traces.

    ## Why is this bad
    A conditional expression is a branch: Dynamo compiles what it has, asks the tensor in plain Python and starts a new
    graph (GB0170). `fullgraph=True` and `torch.export` fail.

    ## Example
    ```python
    @torch.compile
    def scaled(x: torch.Tensor):
        return x * 2.0 if x.mean() > 0 else x * 0.5
    ```

    ## Use instead
    ```python
    @torch.compile
    def scaled(x: torch.Tensor):
        return torch.where(x.mean() > 0, x * 2.0, x * 0.5)
    ```

    ## Fix safety
    As for `tensor-branch` (GM101): safe where it was shown that computing both values in any case cannot be seen, that
    they agree in shape, dtype and device, and that neither gradients nor memory shared with other names tell the
    difference; unsafe where one of these is likely but not shown, and the message names it.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    - [torch.where](https://docs.pytorch.org/docs/stable/generated/torch.where.html)
    """

    CODE, SINCE, FIX = "GM102", "0.2", "safe"
    TITLE, CATEGORY = "a conditional expression on tensor data ends the graph", "control flow"
    TAGS = {"gm102", "branches"}
    BREAKS, TORCH = ("GB0170",), ">=2.0"
    TRANSFORM = "where"
    OPTIONS = ()

    VALID = [
        Valid(
            """
            import torch

            @torch.compile
            def scaled(x: torch.Tensor, flip: bool) -> torch.Tensor:
                return x.flip(0) if flip and x.dim() > 1 else x
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch

            @torch.compile
            def scaled(x: torch.Tensor) -> torch.Tensor:
                return x * 2.0 if x.mean() > 0 else x * 0.5
            """,
            expected_replacement="""
            import torch

            @torch.compile
            def scaled(x: torch.Tensor) -> torch.Tensor:
                return torch.where(x.mean() > 0, x * 2.0, x * 0.5)
            """,
        ),
    ]

    MATCHER = m.IfExp()

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """The expression is rewritten as a whole: see `rewrite.select`."""
        return node
