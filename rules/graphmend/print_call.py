"""GM201: `print` in a region ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class PrintCall(rule.GraphRule):
    """
    ## What it does
    Finds `print(...)`, `sys.stdout.write(...)` and `sys.stderr.write(...)` in code that `torch.compile`
    traces.

    ## Why is this bad
    Dynamo cannot put the call into a graph. It compiles what it has, makes the call in plain Python and
    starts a new graph after it (GB0059 for `print`, GB0007 for `write`). Each break costs launches and
    fusion, and `fullgraph=True` and `torch.export` fail.

    ## Example
    ```python
    class Head(nn.Module):
        def forward(self, x):
            print("shape", x.shape)
            return torch.relu(x)
    ```

    ## Use instead
    ```python
    class Head(nn.Module):
        def forward(self, x):
            deferred(print)("shape", x.shape)
            return torch.relu(x)
    ```

    ## Fix safety
    Safe. Eagerly `deferred(print)` is `print`. In compiled code the text is printed each time the graph
    runs, in the order of the program, with the values that tensors have at that place. Each argument was
    shown to be a constant, a shape, a tensor or a text made of those. Comments and layout stay. With
    `defer-style = "guard"` the fix is unsafe: compiled code no longer prints.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0059](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html)
    - [GB0007](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0007.html)
    - [GraphMend, on side effects](https://arxiv.org/abs/2509.16248)
    """

    CODE, SINCE, FIX = "GM201", "0.1", "safe"
    TITLE, CATEGORY = "a print ends the graph", "side effect"
    TAGS = {"gm201", "effects"}
    BREAKS, TORCH = ("GB0059", "GB0007"), ">=2.11"
    TRANSFORM = "defer"
    CALLS = ("builtins.print", "sys.stdout.write", "sys.stderr.write")
    OPTIONS = ("defer-style",)

    VALID = [
        Valid(
            """
            import torch

            def main(model: torch.nn.Module) -> None:
                print("loading")
                torch.compile(model)
            """
        ),
        Valid(
            """
            import torch
            from graphmend_lint.runtime import deferred

            @torch.compile
            def step(x: torch.Tensor) -> torch.Tensor:
                deferred(print)("step", x.shape)
                return x + 1
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch
            from torch import nn

            class Head(nn.Module):
                def forward(self, x):
                    print("shape", x.shape)  # once per call
                    return torch.relu(x)
            """,
            expected_replacement="""
            import torch
            from graphmend_lint.runtime import deferred
            from torch import nn

            class Head(nn.Module):
                def forward(self, x):
                    deferred(print)("shape", x.shape)  # once per call
                    return torch.relu(x)
            """,
        ),
        Invalid(
            """
            import torch

            @torch.compile
            def step(x: torch.Tensor) -> torch.Tensor:
                if torch.isnan(x).any():
                    print(f"nan in {x}")
                return x + 1
            """,
            expected_replacement="""
            import torch
            from graphmend_lint.runtime import formatted, when

            @torch.compile
            def step(x: torch.Tensor) -> torch.Tensor:
                if alarm := when(torch.isnan(x).any()):
                    alarm(print)(formatted("nan in {}", x))
                return x + 1
            """,
        ),
        Invalid(
            """
            import torch

            @torch.compile
            def step(x: torch.Tensor) -> torch.Tensor:
                print("largest", x.max().item() * 2)
                return x + 1
            """
        ),
    ]

    MATCHER = m.Call(func=m.Name() | m.Attribute())

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """`print(...)` becomes `deferred(print)(...)`."""
        return node.with_changes(func=wrap(node.func))
