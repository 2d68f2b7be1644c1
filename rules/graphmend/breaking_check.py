"""GM303: a check call that itself breaks the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class BreakingCheck(rule.GraphRule):
    """
    ## What it does
    Finds `torch._check_tensor_all(...)`, `torch._check_tensor_all_with(...)` and `torch._assert(...)` on tensors in
    code that `torch.compile` traces.

    ## Why is this bad
    These checks read a tensor's data in Python (GB0124), so the graph ends at the very call that was to make the check
    compilable. Each break costs launches, a synchronisation and fusion, and `torch.export` fails.

    ## Example
    ```python
    class Merger(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor):
            torch._check_tensor_all(mask >= 0)
            return x * mask
    ```

    ## Use instead
    ```python
    class Merger(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor):
            deferred(torch._check_tensor_all)(mask >= 0)
            return x * mask
    ```

    ## Fix safety
    Unsafe, and applied only with `--unsafe-fixes`. Eagerly `deferred(f)` is `f`. In compiled code the same check runs
    when the graph does, in the order of the program with other deferred calls, and raises the same exception with the
    same message; the compiled function works afterwards. It was shown, for the function itself, that nothing is changed
    before the check and nothing after it indexes with what it tests. What is not shown: that no other function in the
    graph does so. The check still synchronises with the GPU, as it did. Comments and layout stay.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0124](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0124.html)
    - [GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    """

    CODE, SINCE, FIX = "GM303", "0.1", "unsafe"
    TITLE, CATEGORY = "a check of a tensor ends the graph", "guard"
    TAGS = {"gm303", "guards"}
    BREAKS, TORCH = ("GB0124", "GB0170"), ">=2.11"
    TRANSFORM = "defer"
    CALLS = ("torch._check_tensor_all", "torch._check_tensor_all_with", "torch._assert")
    OPTIONS = ()

    VALID = [
        Valid(
            """
            import torch
            from torch import nn

            class Merger(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    torch._assert(x.dim() == 2, "two dimensions, please")
                    return x
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch
            from torch import nn

            class Merger(nn.Module):
                def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
                    torch._check_tensor_all(mask >= 0)  # one value for each token
                    torch._assert((x > 0).all(), "positive, please")
                    return x * mask
            """
        ),
    ]

    MATCHER = m.Call(func=m.Name() | m.Attribute())

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """`torch._assert(...)` becomes `deferred(torch._assert)(...)`."""
        return node.with_changes(func=wrap(node.func))
