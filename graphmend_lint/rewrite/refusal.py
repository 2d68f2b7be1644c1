"""The exception of a fix that cannot be applied."""

from __future__ import annotations


class Refused(Exception):
    """A fix that does not go with the file; the message says why.

    `defect` says that the plan was wrong, which is a defect of the linter; the source is the cause otherwise.
    """

    def __init__(self, text: str, *, defect: bool = True) -> None:
        super().__init__(text)
        self.defect = defect
