"""What is known of a line, as text for a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_lint import registry
from graphmend_lint.findings import ADVICE, Finding, Reason
from graphmend_lint.report.text import shown_path

if TYPE_CHECKING:
    from graphmend_lint.analysis.values import Value
    from graphmend_lint.explain import Explanation, Found

_STATUS = {
    "compiled": "This line is compiled",
    "likely": "This line may be compiled",
    "not compiled": "This line is not compiled",
}
_KINDS = {
    "static": "known to Python while tracing",
    "tensor": "a tensor",
    "data": "a Python value read from tensor data",
    "unknown": "unknown",
}
_TYPES = {"none": "None", "size": "the sizes of a tensor", "self": "this module", "submodule": "a submodule"}


def lines(explanation: Explanation, base: Path) -> Iterator[str]:
    """The explanation; paths are shown relative to `base`."""
    where = f" in `{explanation.function}`" if explanation.function else ""
    yield f"{shown_path(explanation.path, base)}:{explanation.line}{where}"
    yield ""
    yield f"{_STATUS[explanation.status]}: {explanation.reason}."
    for number, step in enumerate(explanation.steps):
        verb = "runs" if number else "starts at"
        yield f"  {verb} `{step.qualname}` ({shown_path(step.path, base)}:{step.line})"
    if explanation.operands:
        yield ""
        yield "What its operands hold:"
        width = min(max(len(operand.text) for operand in explanation.operands), 40)
        for operand in explanation.operands:
            yield f"  {operand.text:{width}}  {_said(operand.value)}"
    if not explanation.found:
        yield ""
        yield "No rule has anything to say about it."
    for found in explanation.found:
        yield ""
        yield from _of_finding(found, explanation.line)


def _said(value: Value) -> str:
    kind = _KINDS[value.kind]
    if value.type:
        kind += f": {_TYPES.get(value.type, value.type)}"
    if value.symbolic:
        kind += ", perhaps a symbol under dynamic shapes"
    return f"{kind}, or None" if value.optional else kind


def _of_finding(found: Found, line: int) -> Iterator[str]:
    finding = found.finding
    span = finding.span
    here = span.line <= line <= span.end_line
    place = "" if here else f"In line {span.line}, with a fix that changes this line too: "
    yield f"{place}{finding.code} {finding.rule}: {finding.message}"
    if found.unheard:
        yield f"  Not reported: {found.unheard}."
    yield f"  {_fix(finding)}"
    for changed in found.diff.splitlines():
        yield f"    {changed}"
    pages = ", ".join(registry.break_page(number) for number in finding.gb)
    yield f"  More: `graphmend rule {finding.code}`{f', {pages}' if pages else ''}"


def _fix(finding: Finding) -> str:
    if finding.decline is not None:
        known = {reason.value: ADVICE[reason] for reason in Reason}
        advice = known.get(finding.decline.reason)
        return f"No fix is offered ({finding.decline.reason})" + (f"; what helps: {advice}." if advice else ".")
    if finding.fix == "safe":
        return "A fix is offered and safe: all that the rule's page lists was shown. `graphmend fix` makes this change:"
    return "A fix is offered, but unsafe: not all was shown. `graphmend fix --unsafe-fixes` makes this change:"
