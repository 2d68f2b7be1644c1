"""The project index: which file, class or function a dotted name stands for, across files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from graphmend_lint.analysis.summary import ClassSummary, FunctionSummary, ModuleSummary

SymbolKind = Literal["module", "function", "class", "value", "external"]


class Symbol(NamedTuple):
    """What a name stands for. `path` is the defining file, None outside the project.

    `name` is the qualname inside that file, or the whole dotted name for an external symbol.
    """

    kind: SymbolKind
    path: Path | None
    name: str


def package_root(path: Path) -> Path:
    """The folder that holds the outermost package of a file: what `sys.path` would hold."""
    folder = path.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def module_name(path: Path) -> str:
    """The dotted name under which a file is imported, by the `__init__.py` files around it."""
    parts = path.relative_to(package_root(path)).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Project:
    """Summaries by path, read on demand through `load`, and questions about names.

    `load` gives the summary of a file, or None where it cannot be read; it is asked once for each file.
    """

    def __init__(
        self,
        load: Callable[[Path], ModuleSummary | None],
        summaries: dict[Path, ModuleSummary | None] | None = None,
    ) -> None:
        self._load = load
        self.summaries: dict[Path, ModuleSummary | None] = dict(summaries or {})
        self._modules: dict[Path, tuple[Path, str]] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}
        self._resolved: dict[tuple[Path, str], Symbol] = {}
        self._mro: dict[tuple[Path, str], tuple[Symbol, ...]] = {}
        self._methods: dict[tuple[Symbol, str, bool], Symbol | None] = {}
        self._own_packages = {(root, name.partition(".")[0]) for root, name in map(self.place, self.summaries)}

    def summary(self, path: Path) -> ModuleSummary | None:
        """The summary of a file, None if it cannot be read."""
        if path not in self.summaries:
            self.summaries[path] = self._load(path)
        return self.summaries[path]

    def place(self, path: Path) -> tuple[Path, str]:
        """The source root of a file and its module name."""
        if path not in self._modules:
            root = package_root(path)
            self._modules[path] = (root, module_name(path))
        return self._modules[path]

    def find_module(self, root: Path, name: str) -> Path | None:
        """The file of the module `name` under the source root `root`, if it belongs to the project.

        A source root may be a `site-packages` folder: what else is installed there is not the project's.
        """
        key = (root, name)
        if (root, name.partition(".")[0]) not in self._own_packages:
            return None
        if key not in self._found:
            base = root.joinpath(*name.split("."))
            candidates = (base.with_name(base.name + ".py"), base / "__init__.py")
            self._found[key] = next((c for c in candidates if c in self.summaries or c.is_file()), None)
        return self._found[key]

    def absolute(self, path: Path, name: str) -> str:
        """A dotted name as spelled in an import of `path` (leading dots: relative), made absolute."""
        level = len(name) - len(name.lstrip("."))
        if not level:
            return name
        _, module = self.place(path)
        package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
        package = package[: len(package) - (level - 1)] if level > 1 else package
        return ".".join([*package, name[level:]]).strip(".")

    def resolve(self, path: Path, name: str) -> Symbol:
        """What the dotted `name`, as spelled at module level of `path`, stands for."""
        key = (path, name)
        if key not in self._resolved:
            self._resolved[key] = Symbol("external", None, name)  # cycles end here
            self._resolved[key] = self._resolve(path, name)
        return self._resolved[key]

    def _resolve(self, path: Path, name: str) -> Symbol:
        summary = self.summary(path)
        if summary is None:
            return Symbol("external", None, name)
        if symbol := self._own(path, summary, name):
            return symbol
        first, _, rest = name.partition(".")
        if first in summary.imports:
            target = summary.imports[first]
            return self.resolve_absolute(path, self.absolute(path, f"{target}.{rest}" if rest else target))
        if first in summary.assigned:
            return Symbol("value", path, name)
        if path.name == "__init__.py" and (sub := self.find_module(*self._joined(path, first))):
            return self.resolve(sub, rest) if rest else Symbol("module", sub, first)
        for star in summary.star_imports:
            module = self.find_module(self.place(path)[0], self.absolute(path, star))
            found = self.resolve(module, name) if module else None
            if found is not None and found.kind != "external":
                return found
        return Symbol("external", None, name)

    def _joined(self, path: Path, name: str) -> tuple[Path, str]:
        root, module = self.place(path)
        return root, f"{module}.{name}" if module else name

    def _own(self, path: Path, summary: ModuleSummary, name: str) -> Symbol | None:
        if name in summary.functions:
            return Symbol("function", path, name)
        if name in summary.classes:
            return Symbol("class", path, name)
        owner, _, attribute = name.rpartition(".")
        if owner in summary.classes:
            method = self.method(Symbol("class", path, owner), attribute)
            return method or Symbol("value", path, name)
        return None

    def resolve_absolute(self, path: Path, name: str) -> Symbol:
        """What the absolute dotted `name` stands for, seen from `path` (which decides the source root)."""
        root, _ = self.place(path)
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            module = self.find_module(root, ".".join(parts[:cut]))
            if module is None:
                continue
            if cut == len(parts):
                return Symbol("module", module, name)
            found = self.resolve(module, ".".join(parts[cut:]))
            return found if found.kind != "external" else Symbol("external", None, name)
        return Symbol("external", None, name)

    def qualified(self, symbol: Symbol) -> str:
        """The full dotted name of a symbol."""
        if symbol.path is None:
            return symbol.name
        module = self.place(symbol.path)[1]
        return module if symbol.kind == "module" else f"{module}.{symbol.name}"

    def function(self, symbol: Symbol) -> FunctionSummary | None:
        summary = self.summary(symbol.path) if symbol.path else None
        return summary.functions.get(symbol.name) if summary else None

    def class_(self, symbol: Symbol) -> ClassSummary | None:
        summary = self.summary(symbol.path) if symbol.path else None
        return summary.classes.get(symbol.name) if summary else None

    def ancestors(self, symbol: Symbol) -> tuple[Symbol, ...]:
        """A class and its bases, nearest first (depth first, which is enough to find a method), externals included."""
        if symbol.path is None:
            return (symbol,)
        key = (symbol.path, symbol.name)
        if key not in self._mro:
            self._mro[key] = (symbol,)
            found = [symbol]
            for base in c.bases if (c := self.class_(symbol)) else ():
                resolved = self.resolve(symbol.path, base)
                if resolved.kind in ("class", "external"):
                    found.extend(a for a in self.ancestors(resolved) if a not in found)
            self._mro[key] = tuple(found)
        return self._mro[key]

    def method(self, symbol: Symbol, name: str, *, above: bool = False) -> Symbol | None:
        """The function that `instance.name` finds, by the project's part of the class hierarchy."""
        key = (symbol, name, above)
        if key not in self._methods:
            self._methods[key] = self._find_method(symbol, name, above)
        return self._methods[key]

    def _find_method(self, symbol: Symbol, name: str, above: bool) -> Symbol | None:
        for ancestor in self.ancestors(symbol)[1 if above else 0 :]:
            summary = self.class_(ancestor)
            if summary and name in summary.methods:
                return Symbol("function", ancestor.path, summary.methods[name])
        return None

    def attribute_class(self, symbol: Symbol, name: str) -> Symbol | None:
        """The class of `self.name` where `__init__` of the class or of a base assigns an instance to it."""
        for ancestor in self.ancestors(symbol):
            summary = self.class_(ancestor)
            if summary and name in summary.attributes and ancestor.path:
                found = self.resolve(ancestor.path, summary.attributes[name])
                return found if found.kind == "class" else None
        return None

    def classes(self) -> Iterator[tuple[Path, ClassSummary]]:
        """Every class of the files read so far."""
        for path, summary in list(self.summaries.items()):
            for class_summary in summary.classes.values() if summary else ():
                yield path, class_summary

    @cached_property
    def subclasses(self) -> dict[tuple[Path, str], list[Symbol]]:
        """Classes below each class, transitively."""
        below: dict[tuple[Path, str], list[Symbol]] = {}
        for path, class_summary in self.classes():
            symbol = Symbol("class", path, class_summary.qualname)
            for ancestor in self.ancestors(symbol)[1:]:
                if ancestor.path is not None:
                    below.setdefault((ancestor.path, ancestor.name), []).append(symbol)
        return below
