"""Where a file lives: its package, and which absolute imports are of its own project."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: This distribution: whoever fixes code with it depends on it, whatever else lies beside that code.
_OURS = "graphmend_lint"
_ROOT_MARKS = ("pyproject.toml", "setup.cfg", "setup.py", ".git", ".hg")


@dataclass(frozen=True, slots=True)
class Home:
    """The dotted package that holds the file ("" outside of any), and the project's source roots."""

    package: str = ""
    roots: tuple[Path, ...] = ()

    @classmethod
    def of(cls, path: Path) -> Home:
        folder = path.absolute().parent
        names: list[str] = []
        while (folder / "__init__.py").is_file() and folder.name:
            names.insert(0, folder.name)
            folder = folder.parent
        for parent in (folder, *folder.parents):
            if any((parent / mark).exists() for mark in _ROOT_MARKS):
                return cls(".".join(names), (parent, parent / "src"))
        return cls(".".join(names))

    def is_first_party(self, module: str) -> bool:
        """Whether an import sorter would put `module` with the project's own modules."""
        top = module.split(".")[0]
        if top == _OURS:
            return False
        if top == self.package.split(".")[0]:
            return True
        return any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in self.roots)

    def absolute(self, module: str, level: int) -> str | None:
        """The dotted name that a relative import of `module` means here, None if it cannot be known."""
        if level == 0:
            return module
        parts = self.package.split(".") if self.package else []
        if level > len(parts):
            return None
        return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])
