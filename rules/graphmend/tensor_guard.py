"""GM301: a guard on tensor data that raises ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class TensorGuard(rule.GraphRule):
    """
    ## What it does
    Finds `if P: raise E(...)` where `P` depends on tensor data, in code that `torch.compile` traces.

    ## Why is this bad
    Dynamo cannot know which way the branch goes, so it compiles what it has, asks the tensor in plain Python and
    starts a new graph after it (GB0170). A guard in a layer costs this once per layer, and `fullgraph=True` and
    `torch.export` fail.

    ## Example
    ```python
    class Attention(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor):
            if not mask.any():
                raise ValueError(f"nothing to attend to in {mask.shape}")
            return x * mask
    ```

    ## Use instead
    ```python
    class Attention(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor):
            if alarm := unless(mask.any()):
                alarm(fail)(ValueError, formatted("nothing to attend to in {}", mask.shape))
            return x * mask
    ```

    ## Fix safety
    Unsafe, and applied only with `--unsafe-fixes`. Eagerly the same exception is raised on the same data. In compiled
    code one ordered operator looks at the predicate when the graph runs and raises the original exception, with its
    type, its message and its cause; the compiled function works afterwards. It was shown that the message can be
    computed in any case, that no handler of a `try` around the guard is missed, and, for the function itself, that
    nothing is changed before the guard and nothing after it indexes with what the guard tests. Other functions share
    the graph and are not looked at: what they change before the guard is lost when it raises, and an operation that the
    guard protects may run first. An error that tracing itself finds behind the guard (shapes that do not fit) comes
    first, too. On a GPU the check costs one synchronisation, as it did before. Comments and layout stay.

    Messages in front of the exception are given the alarm too. What stands under `else` moves behind the guard, an
    `elif` becomes an `if`. Several tensors joined by `and`, `or` and `not` become one test with `&`, `|` and `~`, and
    `t.item() > 3` becomes `t > 3`, where each part is known to be one boolean and can be computed in any case.

    A test of a tensor that was made of sizes just before (`torch.tensor([height, width]).sum() != n`) is a test that
    Python can make while tracing: it becomes one (`sum([height, width]) != n`), and that fix is safe.

    With `trap-style = "async"` the guard becomes `torch._assert_async(...)`. That needs no runtime and does not wait
    for the GPU, but it raises RuntimeError in place of the exception, eagerly too, and on a GPU its message is lost
    and the process cannot go on.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0170](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html)
    - [GraphMend, on validation guards](https://arxiv.org/abs/2509.16248)
    """

    CODE, SINCE, FIX = "GM301", "0.1", "unsafe"
    TITLE, CATEGORY = "a guard on tensor data ends the graph", "guard"
    TAGS = {"gm301", "guards"}
    BREAKS, TORCH = ("GB0170",), ">=2.11"
    TRANSFORM = "trap"
    OPTIONS = ("trap-style",)

    VALID = [
        Valid(
            """
            import torch
            from torch import nn

            class Attention(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    if x.dim() != 3:
                        raise ValueError(f"three dimensions, please: {tuple(x.shape)}")
                    return x
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import torch
            from torch import nn

            class Attention(nn.Module):
                def forward(self, x: torch.Tensor, mask: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
                    if self.training and not torch.equal(mask, seen):  # one mask for all layers
                        raise ValueError(
                            "the mask has changed, its sum is now "
                            f"{mask.sum()}"
                        )
                    return x * mask
            """
        ),
        Invalid(
            """
            import torch

            @torch.compile
            def look_up(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
                if (index >= len(table)).any():
                    raise IndexError("no such row")
                return table[index]
            """
        ),
    ]

    MATCHER = m.Raise(exc=m.Call() | m.Name() | m.Attribute())

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """`raise E(...)` becomes `alarm(fail)(E, ...)` under `if alarm := when(P):`; see `rewrite.express.failing`."""
        return node.with_changes(func=wrap(cst.Name("fail")))
