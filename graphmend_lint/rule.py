"""Fixit's door: the base class of the rules.

Fixit walks a tree and asks each rule about each node. Here the engine has the findings of the whole file,
so a rule only reports its share of them when the tree is done. All rules of a file share one `Facts`, whose
findings are computed once; positions and parents of nodes, which cost more than the parse, never are.

Fixit applies replacements by node, in an order that changes from run to run, and drops those inside another
one. So the fixes of all enabled rules are composed into one replacement, and the first fixed finding
carries it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import libcst as cst
from fixit import CodePosition, CodeRange, LintRule, LintViolation
from fixit.ftypes import VisitorMethod
from libcst.metadata import BaseMetadataProvider, ProviderT

from graphmend_lint import config, engine, fixing
from graphmend_lint.findings import Finding, Span
from graphmend_lint.rewrite import Wrap
from graphmend_lint.rewrite.locate import locate

__all__ = ["GraphRule", "Wrap"]


@dataclass(frozen=True, slots=True)
class _Composed:
    """The fixes of a file as Fixit wants them: the finding `carrier` turns `node` into `replacement`."""

    node: cst.CSTNode | None = None
    replacement: cst.CSTNode | None = None
    carrier: Finding | None = None
    problem: str | None = None


class Facts:
    """What the rules of one file share."""

    def __init__(self, module: cst.Module, path: Path) -> None:
        self.module, self.path = module, path
        self._codes: set[str] = set()

    def enable(self, code: str) -> None:
        """Note that a rule runs. All rules do so before the first of them asks for its findings."""
        self._codes.add(code)

    @cached_property
    def settings(self) -> config.Settings:
        """The configuration of the file, but for the choice of rules, which is Fixit's.

        Comments that silence nothing are not looked for: no rule of Fixit's would report them, or carry their fix.
        """
        return replace(
            config.load_settings(self.path),
            select=tuple(sorted(self._codes)),
            ignore=(),
            report_unused_suppressions=False,
        )

    @cached_property
    def findings(self) -> list[Finding]:
        return _lint(self.module.bytes, self.path, self.settings)

    @cached_property
    def nodes(self) -> Mapping[Span, cst.CSTNode]:
        """The calls that the findings speak of."""
        return locate(self.module, {finding.span for finding in self.findings}).expressions

    @cached_property
    def composed(self) -> _Composed:
        """The fixes of all enabled rules in one replacement."""
        try:
            return self._compose()
        except Exception as error:  # a defect in a fix must not cost the findings
            return _Composed(problem=f"{type(error).__name__}: {error}")

    def _compose(self) -> _Composed:
        source = self.module.bytes
        if self._prints_otherwise(source):
            return _Composed(problem="the file would not print as it is")
        result = fixing.fix_source(source, self.path, settings=self.settings, lint=_lint)
        problem = result.problems[0] if result.problems else None
        if not result.changed:
            return _Composed(problem=problem)
        fixed = cst.parse_module(result.source)
        if fixed.bytes != result.source:
            return _Composed(problem="the fixed file would not print as it is")
        node, replacement = _smallest(self.module, fixed)
        first_round = [finding for finding in result.applied if finding in self.findings]
        return _Composed(node, replacement, min(first_round, key=lambda finding: finding.sort_key), problem)

    def _prints_otherwise(self, source: bytes) -> bool:
        """Whether LibCST prints the file on disk with other spaces than it has; such a file is left alone.

        Fixit does not hand out what it read. In an editor the source may differ from the file in any way.
        """
        try:
            disk = self.path.read_bytes()
        except OSError:
            return False
        return disk != source and b"".join(disk.split()) == b"".join(source.split())


def _lint(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
    return list(engine.lint_source(source, path, settings=settings))


def _smallest(old: cst.Module, new: cst.Module) -> tuple[cst.CSTNode, cst.CSTNode]:
    """The one statement that differs and its new form; the modules if more differs.

    A finding travels between processes with its node, so a statement is better than a module.
    """
    if len(old.body) != len(new.body) or len(old.header) != len(new.header):
        return old, new
    different = [
        pair
        for pair in zip(old.body, new.body, strict=True)
        if old.code_for_node(pair[0]) != new.code_for_node(pair[1])
    ]
    return different[0] if len(different) == 1 else (old, new)


class FactsProvider(BaseMetadataProvider[Facts]):
    """Gives rules the facts about their file. `gen_cache` is how Fixit tells a provider the file's path."""

    @classmethod
    def gen_cache(
        cls,
        root_path: Path,
        paths: Sequence[str],
        *,
        timeout: int | None = None,
        use_pyproject_toml: bool = False,
    ) -> Mapping[str, object]:
        return {path: Path(path) for path in paths}

    def _gen_impl(self, module: cst.Module) -> None:
        assert isinstance(self.cache, Path)
        self.set_metadata(module, Facts(module, self.cache))


class GraphRule(LintRule):
    """A rule of graphmend-lint: its declarations, the node it speaks of, and the form of its fix.

    `graphmend_lint.registry` reads the declarations of a subclass without running it, so they are literals.
    """

    CODE: ClassVar[str] = ""
    MATCHER: ClassVar[Any] = None
    VALID: ClassVar[list[Any]] = []
    INVALID: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        super().__init__()
        self.name = self.CODE

    @staticmethod
    def replacement(node: cst.Call, wrap: Wrap) -> cst.Call:
        """What becomes of the node at a finding; `wrap` makes the runtime call that the plan asks for."""
        raise NotImplementedError

    # What follows replaces parts of LintRule that would compute positions and parents of every node, and
    # look at comments around the carrier of a fix; the engine knows both better.

    @classmethod
    def get_inherited_dependencies(cls) -> Collection[ProviderT]:
        return (FactsProvider,)

    def get_visitors(self) -> Mapping[str, VisitorMethod]:
        return {"visit_Module": self._start, "leave_Module": self._finish}

    def _start(self, module: cst.CSTNode) -> None:
        self.get_metadata(FactsProvider, module).enable(self.CODE)

    def _finish(self, module: cst.CSTNode) -> None:
        facts = self.get_metadata(FactsProvider, module)
        for finding in facts.findings:
            if finding.code == self.CODE:
                self._violations.append(_violation(finding, facts))


def _violation(finding: Finding, facts: Facts) -> LintViolation:
    composed = facts.composed
    message, node, replacement = finding.message, facts.nodes.get(finding.span, facts.module), None
    if finding == composed.carrier and composed.node is not None:
        node, replacement = composed.node, composed.replacement
    elif finding.plan is not None and composed.problem is not None:
        message = f"{message} (not fixed: {composed.problem})"
    span = finding.span
    position = CodeRange(CodePosition(span.line, span.column), CodePosition(span.end_line, span.end_column))
    return LintViolation(finding.code, position, message, node, replacement)
