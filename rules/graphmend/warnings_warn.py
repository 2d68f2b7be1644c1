"""GM203: `warnings.warn` in a region ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class WarningsWarn(rule.GraphRule):
    """
    ## What it does
    Finds `warnings.warn(...)` in code that `torch.compile` traces.

    ## Why is this bad
    Dynamo skips the `warnings` module (GB0007). It compiles what it has, warns in plain Python and starts a
    new graph after it. Each break costs launches and fusion, and `fullgraph=True` and `torch.export` fail.

    ## Example
    ```python
    class Embedder(nn.Module):
        def forward(self, x):
            warnings.warn("`head_mask` is deprecated", FutureWarning)
            return torch.relu(x)
    ```

    ## Use instead
    ```python
    class Embedder(nn.Module):
        def forward(self, x):
            deferred(warnings.warn)("`head_mask` is deprecated", FutureWarning)
            return torch.relu(x)
    ```

    ## Fix safety
    Safe. Eagerly `deferred(warnings.warn)` is `warnings.warn`. In compiled code the warning is given each
    time the graph runs, attributed to the line that `stacklevel` names, and the filters in force at that
    moment decide whether it is shown. Each argument was shown to be a constant, a shape, a tensor or a text
    made of those. Comments and layout stay. With `defer-style = "guard"` the fix is unsafe: compiled code
    no longer warns.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0007](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0007.html)
    - [GraphMend, on side effects](https://arxiv.org/abs/2509.16248)
    """

    CODE, SINCE, FIX = "GM203", "0.1", "safe"
    TITLE, CATEGORY = "a warning ends the graph", "side effect"
    TAGS = {"gm203", "effects"}
    BREAKS, TORCH = ("GB0007",), ">=2.11"
    TRANSFORM = "defer"
    CALLS = ("warnings.warn",)
    OPTIONS = ("defer-style",)

    VALID = [
        Valid(
            """
            import warnings

            import torch

            def main(model: torch.nn.Module) -> None:
                warnings.warn("slow the first time")
                torch.compile(model)
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import warnings

            import torch
            from torch import nn

            class Embedder(nn.Module):
                def forward(self, x: torch.Tensor, head_mask=None) -> torch.Tensor:
                    if head_mask is not None:
                        warnings.warn("`head_mask` is deprecated", FutureWarning)
                    return torch.relu(x)
            """,
            expected_replacement="""
            import warnings

            import torch
            from graphmend_lint.runtime import deferred
            from torch import nn

            class Embedder(nn.Module):
                def forward(self, x: torch.Tensor, head_mask=None) -> torch.Tensor:
                    if head_mask is not None:
                        deferred(warnings.warn)("`head_mask` is deprecated", FutureWarning)
                    return torch.relu(x)
            """,
        ),
        Invalid(
            """
            import warnings

            import torch

            @torch.compile
            def step(x: torch.Tensor) -> torch.Tensor:
                try:
                    warnings.warn("slow")
                finally:
                    x = x + 1
                return x
            """
        ),
    ]

    MATCHER = m.Call(func=m.Name() | m.Attribute())

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """`warnings.warn(...)` becomes `deferred(warnings.warn)(...)`."""
        return node.with_changes(func=wrap(node.func))
