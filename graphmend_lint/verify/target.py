"""What is verified: a callable that returns a model and its inputs, named as a person would type it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class BadTarget(ValueError):
    """The text names no target; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """`module` is imported with `root` first on the path; `attribute` is called without arguments.

    The callable returns `(model_or_function, inputs)`. `inputs` is a list of input sets, each a tuple of
    positional arguments, a dict of keyword arguments, or a pair `(args, kwargs)` of both.
    """

    text: str
    module: str
    attribute: str
    root: Path

    @classmethod
    def parse(cls, text: str, cwd: Path | None = None) -> TargetSpec:
        """Reads `package.module:callable` or `path/to/file.py:callable`; raises BadTarget."""
        place, colon, attribute = text.rpartition(":")
        if not colon or not place or not attribute.replace(".", "_").isidentifier():
            raise BadTarget(f"target {text!r} is not of the form module:callable or file.py:callable")
        folder = (cwd or Path.cwd()).resolve()
        if place.endswith(".py"):
            module, root = _module_of(folder / place, text)
            return cls(text, module, attribute, root)
        if not all(part.isidentifier() for part in place.split(".")):
            raise BadTarget(f"target {text!r}: {place!r} is neither a module name nor a .py file")
        return cls(text, place, attribute, folder)


def _module_of(file: Path, text: str) -> tuple[str, Path]:
    """The dotted name of a file and the folder to import it from, so that its relative imports work."""
    if not file.is_file():
        raise BadTarget(f"target {text!r}: no file {file}")
    file = file.resolve()
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    if not all(part.isidentifier() for part in parts):
        raise BadTarget(f"target {text!r}: {'.'.join(parts)!r} cannot be imported")
    return ".".join(parts), folder
