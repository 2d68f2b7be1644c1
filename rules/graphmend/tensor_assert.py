"""GM302: an assertion on tensor data ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class TensorAssert(rule.GraphRule):
    """
    ## What it does
    Finds `assert P, message` where `P` depends on tensor data and Dynamo has no answer of its own, in code that
    `torch.compile` traces.

    ## Why is this bad
    Dynamo compiles `assert t.all()` and `assert t.all(), "text"` into `torch._assert_async`: no graph break, but
    compiled code raises RuntimeError where plain code raises AssertionError. All other assertions on tensors end the
    graph (GB0170): one with an f-string (even a static one) or any other message that is no constant text,
    `assert not t.any()`, `assert a.all() and b.all()`, `torch.equal`, a comparison of `.item()`. Those are reported.

    ## Example
    ```python
    class Attention(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor):
            assert mask.any(), f"no mask in {tuple(mask.shape)}"
            return x * mask
    ```

    ## Use instead
    ```python
    class Attention(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor):
            if __debug__ and (alarm := unless(mask.any())):
                alarm(fail)(AssertionError, formatted("no mask in {}", tuple(mask.shape)))
            return x * mask
    ```

    ## Fix safety
    Unsafe, and applied only with `--unsafe-fixes`, for the reasons that the page of GM301 gives: other functions share
    the graph and are not looked at. Eagerly the same AssertionError is raised on the same data, and under
    `python -O` the check goes away as the assertion did. Compiled code raises it too, with the same message, when the
    graph runs. Several tensors joined by `and`, `or` and `not` become one test with `&`, `|` and `~` where each part is
    known to be one boolean and can be computed in any case. `trap-style = "async"` is explained there as well;
    `python -O` does not take such a check away.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    """

    CODE, SINCE, FIX = "GM302", "0.3", "unsafe"
    TITLE, CATEGORY = "an assertion on tensor data ends the graph", "guard"
    TAGS = {"gm302", "guards"}
    BREAKS, TORCH = ("GB0170",), ">=2.11"
    TRANSFORM = "asserts"
    OPTIONS = ("trap-style",)

    VALID = [
        Valid(
            """
            import torch

            @torch.compile
            def scaled(x: torch.Tensor) -> torch.Tensor:
                assert x.dim() == 2, f"two dimensions, please: {x.shape}"
                assert (x > 0).all(), "x must be positive"  # Dynamo compiles this one
                return x.log()
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch

            @torch.compile
            def scaled(x: torch.Tensor) -> torch.Tensor:
                assert (x > 0).all(), f"x must be positive, is {x.min()}"  # or log gives nan
                return x.log()
            """
        ),
        Invalid(
            """
            import torch

            @torch.compile
            def scaled(x: torch.Tensor) -> torch.Tensor:
                assert not x.isnan().any()
                return x.log()
            """
        ),
    ]

    MATCHER = m.Assert()

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """`assert P` becomes `alarm(fail)(AssertionError)` under an `if`; see `rewrite.checks.asserted`."""
        return node.with_changes(func=wrap(cst.Name("fail")))
