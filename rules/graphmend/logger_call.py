"""GM202: a logger call in a region ends the graph."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from fixit import Invalid, Valid

from graphmend_lint import rule


class LoggerCall(rule.GraphRule):
    """
    ## What it does
    Finds calls of a logger's methods (`logger.info(...)`, `self.logger.warning_once(...)`,
    `logging.error(...)`) in code that `torch.compile` traces.

    ## Why is this bad
    Dynamo does not trace logger methods, at disabled levels either (GB0291). It compiles what it has, logs
    in plain Python and starts a new graph after it. Each break costs launches and fusion, and
    `fullgraph=True` and `torch.export` fail.

    ## Example
    ```python
    class Encoder(nn.Module):
        def forward(self, x):
            logger.warning_once("`position_ids` is ignored")
            return torch.relu(x)
    ```

    ## Use instead
    ```python
    class Encoder(nn.Module):
        def forward(self, x):
            deferred(logger).warning_once("`position_ids` is ignored")
            return torch.relu(x)
    ```

    ## Fix safety
    Safe. Eagerly `deferred(logger)` is `logger`. In compiled code the record is made each time the graph
    runs, in the order of the program, attributed to the same line; a `*_once` call with constant arguments
    speaks while the graph is traced. The name was shown to hold a `logging.Logger`, and each argument to be
    a constant, a shape, a tensor or a text made of those. Comments and layout stay. With `defer-style =
    "guard"` the fix is unsafe: compiled code no longer logs.

    ## When no fix is offered

    ## Options

    ## References
    - [GB0291](https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0291.html)
    - [GraphMend, on side effects](https://arxiv.org/abs/2509.16248)
    """

    CODE, SINCE, FIX = "GM202", "0.1", "safe"
    TITLE, CATEGORY = "a logger call ends the graph", "side effect"
    TAGS = {"gm202", "effects"}
    BREAKS, TORCH = ("GB0291",), ">=2.11"
    TRANSFORM = "defer"
    METHODS = (
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "critical",
        "fatal",
        "exception",
        "log",
        "debug_once",
        "info_once",
        "warning_once",
        "error_once",
    )
    OPTIONS = ("defer-style",)

    VALID = [
        Valid(
            """
            import logging

            import torch

            logger = logging.getLogger(__name__)

            def main(model: torch.nn.Module) -> None:
                logger.info("compiling")
                torch.compile(model)
            """
        ),
        Valid(
            """
            import torch
            from torch import nn

            class Ruler(nn.Module):
                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    return torch.log(x)
            """
        ),
    ]
    INVALID = [
        Invalid(
            """
            import logging

            import torch
            from torch import nn

            logger = logging.getLogger(__name__)

            class Encoder(nn.Module):
                def forward(self, x: torch.Tensor, position_ids=None) -> torch.Tensor:
                    if position_ids is not None:
                        # heard once in a process
                        logger.warning(
                            "`position_ids` of shape %s is ignored",
                            x.shape,  # the input's
                        )
                    return torch.relu(x)
            """,
            expected_replacement="""
            import logging

            import torch
            from graphmend_lint.runtime import deferred
            from torch import nn

            logger = logging.getLogger(__name__)

            class Encoder(nn.Module):
                def forward(self, x: torch.Tensor, position_ids=None) -> torch.Tensor:
                    if position_ids is not None:
                        # heard once in a process
                        deferred(logger).warning(
                            "`position_ids` of shape %s is ignored",
                            x.shape,  # the input's
                        )
                    return torch.relu(x)
            """,
        ),
        Invalid(
            """
            import torch

            @torch.compile
            def step(x: torch.Tensor, logger) -> torch.Tensor:
                logger.info("step")
                return x + 1
            """
        ),
    ]

    MATCHER = m.Call(func=m.Name() | m.Attribute(attr=m.Name(m.MatchIfTrue(METHODS.__contains__))))

    @staticmethod
    def replacement(node: cst.Call, wrap: rule.Wrap) -> cst.Call:
        """`logger.info(...)` becomes `deferred(logger).info(...)`, a function of `logging` is wrapped as a
        whole.
        """
        func = node.func
        if wrap.whole or not isinstance(func, cst.Attribute):
            return node.with_changes(func=wrap(func))
        return node.with_changes(func=func.with_changes(value=wrap(func.value)))
