"""GM101: a branch on tensor data ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class TensorBranch(rule.GraphRule):
    """
    ## What it does
    Finds `if`, `elif` and `while` whose test depends on tensor data, in code that `torch.compile` traces.

    ## Why is this bad
    Dynamo cannot know which way the branch goes, so it compiles what it has, asks the tensor in plain Python (on a GPU
    this waits for everything before it) and starts a new graph on each side (GB0170). A branch in a layer costs this
    once per layer, and `fullgraph=True` and `torch.export` fail.

    ## Example
    ```python
    class Layer(nn.Module):
        def forward(self, x: torch.Tensor, residual: torch.Tensor):
            x = residual + x
            if x.dtype == torch.float16 and torch.isinf(x).any():
                limit = torch.finfo(x.dtype).max - 1000
                x = torch.clamp(x, min=-limit, max=limit)
            return x
    ```

    ## Use instead
    ```python
    class Layer(nn.Module):
        def forward(self, x: torch.Tensor, residual: torch.Tensor):
            x = residual + x
            if x.dtype == torch.float16:
                limit = torch.finfo(x.dtype).max - 1000
                x = torch.where(
                    torch.isinf(x).any(), torch.clamp(x, min=-limit, max=limit), x
                )
            return x
    ```

    ## Fix safety
    Safe where all of this was shown: what used to be computed on one side only cannot raise, changes nothing, draws no
    random numbers and is cheap; both values have one shape, dtype and device; a value that is not taken passes back
    a gradient of zero, whatever it holds, and both depend on the same tensors, so that no gradient turns from None into
    zeros; and nobody else holds the tensor that used to be passed on unchanged. Where one of the last points is likely
    but not shown, the fix is unsafe, and the message names what it takes for granted. Static tests that come first
    stay a Python `if`. Comments and layout stay.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    - [torch.where](https://docs.pytorch.org/docs/stable/generated/torch.where.html)
    - [torch.cond](https://docs.pytorch.org/docs/stable/cond.html), for sides that are expensive
    - [GraphMend, on data-dependent control flow](https://arxiv.org/abs/2509.16248)
    """

    CODE, SINCE, FIX = "GM101", "0.2", "safe"
    TITLE, CATEGORY = "a branch on tensor data ends the graph", "control flow"
    TAGS = {"gm101", "branches"}
    BREAKS, TORCH = ("GB0170",), ">=2.0"
    TRANSFORM = "where"
    OPTIONS = ()

    VALID = [
        Valid(
            """
            import torch
            from torch import nn

            class Layer(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    if x.shape[0] > 4 and self.training:
                        x = x.clamp(-1.0, 1.0)
                    return x
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch
            from torch import nn

            class Layer(nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.norm = nn.LayerNorm(8)

                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    x = self.norm(x)
                    # half precision overflows
                    if x.dtype == torch.float16 and not torch.isfinite(x).all():
                        limit = torch.finfo(x.dtype).max - 1000
                        x = torch.clamp(x, min=-limit, max=limit)
                    return x
            """,
            expected_replacement="""
            import torch
            from torch import nn

            class Layer(nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.norm = nn.LayerNorm(8)

                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    x = self.norm(x)
                    # half precision overflows
                    if x.dtype == torch.float16:
                        limit = torch.finfo(x.dtype).max - 1000
                        x = torch.where(
                            torch.isfinite(x).all(), x, torch.clamp(x, min=-limit, max=limit)
                        )
                    return x
            """,
        ),
        Invalid(
            """
            import torch
            from torch import nn

            class Gate(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    if x.sum() > 0:
                        y = x * 2.0
                    else:
                        y = x + 1.0
                    return y
            """,
            expected_replacement="""
            import torch
            from torch import nn

            class Gate(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    y = torch.where(x.sum() > 0, x * 2.0, x + 1.0)
                    return y
            """,
        ),
    ]

    MATCHER = (
        m.Attribute()
        | m.BinaryOperation()
        | m.BooleanOperation()
        | m.Call()
        | m.Comparison()
        | m.Name()
        | m.NamedExpr()
        | m.Subscript()
        | m.UnaryOperation()
    )

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """The branch is rewritten as a whole: see `rewrite.select`."""
        return node
