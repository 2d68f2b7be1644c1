"""From plans to source text: nodes, layout and imports. A rewrite decides nothing; it does what a plan
says, or refuses.
"""

from __future__ import annotations

from graphmend_lint.rewrite.check import NotFaithful
from graphmend_lint.rewrite.compose import Applied, Fix, Form, Wrap, apply
from graphmend_lint.rewrite.home import Home
from graphmend_lint.rewrite.refusal import Refused

__all__ = ["Applied", "Fix", "Form", "Home", "NotFaithful", "Refused", "Wrap", "apply"]
