"""Dynamo's break log, read."""

from __future__ import annotations

from graphmend_lint.verify.worker.capture import reason_of, sites_of

FIRST = f"""Graph break in user code at {__file__}:12
Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):

logging.Logger method not supported for non-export cases
  Explanation: logging.Logger methods are not supported for non-export cases.
  Hint: Add the logging method to `torch._dynamo.config.ignore_logging_functions`.

  Developer debug context: method: warning

 For more details about this graph break, please visit: https://host/compile-graph-break-site/gb/gb0291.html

User code traceback:
  File "/nowhere/outer.py", line 5, in main
    model(x)
  File "{__file__}", line 12, in forward
    logger.warning("x")
    ^^^^^^^^^^^^^^^^^^^
"""
AGAIN = "\n".join(
    FIRST.replace("Graph break in", "Graph break (user stack suppressed due to duplicate graph break) in").split(
        "\n\nUser code traceback:"
    )[:1]
)
IN_A_LOOP = (
    FIRST.replace(
        "Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):",
        "Failed to handle graph break gracefully. Skipping the function and falling back to eager. "
        "Graph break encountered:",
    )
    .replace("line 12", "line 30")
    .replace(":12\n", ":30\n")
    .replace(
        "\nUser code traceback",
        "*** While handling this graph break, another graph break occurred: ***\n\ngraph break in loop\n"
        "  Explanation: torch.compile detected a graph break in a for/while loop.\n\nUser code traceback",
    )
)


def test_a_place_is_listed_once_and_counted() -> None:
    (site,) = sites_of([FIRST, AGAIN])
    assert (site.gb, site.file, site.line, site.function, site.times) == (
        "GB0291",
        __file__,
        12,
        "forward",
        2,
    )
    assert site.type == "logging.Logger method not supported for non-export cases"
    assert site.code == 'logger.warning("x")'
    assert not site.skipped


def test_a_frame_given_up_keeps_the_reason_of_the_break_in_it() -> None:
    first, second = sites_of([FIRST, IN_A_LOOP])
    assert not first.skipped
    assert second.skipped
    assert (second.line, second.gb) == (30, "GB0291")


def test_a_refusal_of_fullgraph_in_one_line() -> None:
    text = "Dynamic shape operator\n  Explanation: Operator `aten.nonzero.default`'s output shape depends.\n"
    assert reason_of(text) == "Dynamic shape operator"
    assert reason_of("") == "unknown"
