"""Merging: two arms become one list of statements in which each name that both may give is a selection."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from graphmend_lint.analysis.tensor_ops import INEXACT
from graphmend_lint.analysis.tensors import Fact, Key, Number, Tensor, Tensors
from graphmend_lint.analysis.values import Env
from graphmend_lint.findings import Reason
from graphmend_lint.transforms.arms import Arm, Augmented, Choice, Old, Store, Tree
from graphmend_lint.transforms.carry import Obstacle
from graphmend_lint.transforms.predicate import Predicate, read_names

#: Where autograd is known to be off.
WithoutGradients = Literal["function", "block", "nowhere"]


@dataclass(slots=True)
class _Written:
    """Which names have been bound so far, and by whom."""

    then: set[str]
    otherwise: set[str]
    both: set[str]


class Merger:
    """Merges the arms of one `if`.

    `is_exclusive(name)`: before the branch nothing but the name refers to its tensor. `without_gradients`: where
    autograd is known to be off: in the whole function, in a block around the branch, or nowhere.
    `traceable`: no tensor is changed in place, so that what a tensor was computed from is all that it depends on.
    """

    def __init__(
        self,
        tensors: Tensors,
        text: Callable[[ast.expr], str],
        doubt: Callable[[str], None],
        is_exclusive: Callable[[str], bool],
        *,
        without_gradients: WithoutGradients,
        traceable: bool,
    ) -> None:
        self.tensors, self.text, self.doubt, self.is_exclusive = tensors, text, doubt, is_exclusive
        self.without_gradients, self.traceable = without_gradients, traceable

    def merge(self, predicate: Predicate, then: Arm, otherwise: Arm, env: Env) -> Arm:
        """One arm that does what either does, by the predicate.

        Raises:
            Obstacle: the two do not go together.
        """
        if (then.returned is None) != (otherwise.returned is None):
            raise Obstacle(Reason.ARM_LEAVES, "one side returns and the other goes on")
        merged = Arm()
        names = _Written(set(), set(), set())
        mine, theirs = then.stores, otherwise.stores
        waiting = iter(otherwise.steps)
        for step in then.steps:
            if not isinstance(step, Store):
                self._keep(step, names.then, names.otherwise | names.both, merged)
            elif step.key in theirs:
                self._keep_until(step.key, predicate, env, waiting, theirs, names, merged, mine)
                self._choose(predicate, step, theirs[step.key], names, merged)
            else:
                self._choose(predicate, step, self._old(step, env), names, merged)
        for step in waiting:
            self._late(step, predicate, names, merged, mine, env)
        if then.returned is not None and otherwise.returned is not None:
            if [store.key for store in then.returned] != [store.key for store in otherwise.returned]:
                raise Obstacle(Reason.VALUES_NOT_TENSORS, "the two sides return values of different structure")
            pairs = zip(then.returned, otherwise.returned, strict=True)
            merged.returned = tuple(self._chosen(predicate, a, b, names) for a, b in pairs)
        return merged

    def _late(
        self,
        step: ast.stmt | Store,
        predicate: Predicate,
        names: _Written,
        merged: Arm,
        mine: dict[str, Store],
        env: Env,
    ) -> None:
        """A step of the second arm behind all that the first one stores."""
        if not isinstance(step, Store):
            self._keep(step, names.otherwise, names.then | names.both, merged)
        elif step.key not in mine:
            self._choose(predicate, self._old(step, env), step, names, merged, at=step)

    def _keep_until(
        self,
        key: str,
        predicate: Predicate,
        env: Env,
        waiting: Iterator[ast.stmt | Store],
        theirs: dict[str, Store],
        names: _Written,
        merged: Arm,
        mine: dict[str, Store],
    ) -> None:
        """Keep what the second arm does before it stores `key`."""
        if key in names.both:
            return
        for step in waiting:
            if not isinstance(step, Store):
                self._keep(step, names.otherwise, names.then | names.both, merged)
            elif step.key == key:
                return
            elif step.key not in mine:
                self._choose(predicate, self._old(step, env), step, names, merged, at=step)
            elif theirs[step.key].statement is not theirs[key].statement:
                raise Obstacle(Reason.NAMES_INTERTWINED, f"the sides assign `{step.key}` in different orders")

    def _keep(self, statement: ast.stmt, own: set[str], others: set[str], merged: Arm) -> None:
        read = set(read_names(statement))
        bound = _bound(statement)
        if (read - bound) & others or bound & others:
            name = min((read | bound) & others)
            raise Obstacle(Reason.NAMES_INTERTWINED, f"line {statement.lineno} and the other side use `{name}`")
        own |= bound
        merged.steps.append(statement)

    def _old(self, store: Store, env: Env) -> Store:
        """What a name or an attribute that only one arm stores has on the other side."""
        key = store.key
        if isinstance(store.statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and key.isidentifier():
            if key not in env or env[key].unbound:
                raise Obstacle(Reason.NAME_MAY_BE_UNBOUND, f"`{key}` has no value where the branch is not taken")
            fact = self.tensors.fact(ast.Name(key, ast.Load()), env)
            if isinstance(fact, Tensor) and not fact.hazards:
                fresh = fact.fresh or self.is_exclusive(key)
                return Store(key, store.statement, store.place, Old(key), replace(fact, fresh=fresh))
            raise Obstacle(Reason.VALUES_NOT_TENSORS, f"`{key}` is not known to be a tensor where it is not assigned")
        owner, _, name = key.partition(".")
        if isinstance(store.statement, ast.Assign) and owner.isidentifier() and name.isidentifier():
            fact = self.tensors.fact(ast.Attribute(ast.Name(owner, ast.Load()), name, ast.Load()), env)
            if isinstance(fact, Tensor) and not fact.hazards:
                self.doubt(f"`{key}` may be set to a new tensor in each call")
                return Store(key, store.statement, store.place, Old(key), fact)
        raise Obstacle(Reason.ARM_CHANGES_STATE, f"only one side stores into `{key}`")

    def _choose(
        self, predicate: Predicate, a: Store, b: Store, names: _Written, merged: Arm, at: Store | None = None
    ) -> None:
        made = self._chosen(predicate, a, b, names, at)
        names.both |= {made.key} | _bound(made.statement)
        merged.steps.append(made)

    def _chosen(self, predicate: Predicate, a: Store, b: Store, names: _Written, at: Store | None = None) -> Store:
        """The store of one of two values."""
        at = at or a
        line = at.statement.lineno
        for side, others in ((a, names.otherwise | names.both), (b, names.then | names.both)):
            if clash := reads(side.tree) & others:
                raise Obstacle(Reason.NAMES_INTERTWINED, f"line {line} needs `{min(clash)}` as one side leaves it")
        merged = tuple(
            dict.fromkeys(s for s in (*a.merged, *b.merged, a.statement, b.statement) if s is not at.statement)
        )
        if isinstance(a.tree, ast.expr) and isinstance(b.tree, ast.expr) and _same(a.tree, b.tree):
            return replace(at, merged=merged)
        fact = self._selected(predicate, a, b)
        return replace(at, tree=Choice(predicate, a.tree, b.tree), fact=fact, merged=merged)

    # -- what two values must have in common ----------------------------------------------------------------------

    def _selected(self, predicate: Predicate, a: Store, b: Store) -> Fact:
        first, second = a.fact, b.fact
        if not isinstance(first, Tensor) or not isinstance(second, Tensor):
            odd = a if not isinstance(first, Tensor) else b
            number = isinstance(odd.fact, Number) and odd.fact.type
            what = "is a number of Python" if number else "is not known to be a tensor"
            raise Obstacle(Reason.VALUES_NOT_TENSORS, f"`{self._tree_text(odd)}` {what}")
        both = f"`{self._tree_text(a)}` and `{self._tree_text(b)}`"
        if first.shape != second.shape:
            if "(" not in a.key:
                raise Obstacle(Reason.SHAPES_DIFFER, f"{both} may differ in shape")
            self.doubt(f"{both} have one shape")
        if first.dtype.key != second.dtype.key:
            related = _comes_from(first.dtype.key, second.dtype.key) or _comes_from(second.dtype.key, first.dtype.key)
            if "(" not in a.key and (not related or not first.dtype.classes & second.dtype.classes):
                raise Obstacle(Reason.DTYPES_DIFFER, f"{both} may differ in dtype")
            self.doubt(f"{both} have one dtype")
        if first.layout != second.layout:
            self.doubt(f"{both} lie in memory in the same order")
        if first.device != second.device:
            self.doubt(f"{both} are on one device")
        elif any(device != first.device for device in predicate.devices):
            self.doubt(f"the test is on the device of {both}")
        if (first.dtype.classes | second.dtype.classes) & INEXACT:
            if self.without_gradients == "nowhere":
                self._check_gradients(first, second, both)
            else:
                self._check_carried(a, first)
                self._check_carried(b, second)
        return Tensor(
            first.shape,
            first.dtype,
            first.device,
            first.layout,
            ("chosen", first.value, second.value),
            first.fresh and second.fresh,
            first.roots | second.roots,
            first.culprit or second.culprit,
        )

    def _check_gradients(self, first: Tensor, second: Tensor, both: str) -> None:
        culprit = first.culprit or second.culprit
        if first.roots != second.roots:
            origins, others = self._origins(first), self._origins(second)
            culprit = culprit or origins[1] or others[1]
            if origins[0] != others[0]:
                self.doubt(
                    f"no gradient is asked for, since {both} depend on different tensors, and the one that is not "
                    "taken would get zeros where it got none"
                )
        if culprit:
            self.doubt(f"no gradient is asked for, since that of `{culprit}` may be nan where it is not taken")

    def _check_carried(self, store: Store, fact: Tensor) -> None:
        """A tensor from where autograd was on keeps its gradient through the branch; a selection of it has none."""
        carried = isinstance(store.tree, (Old, Augmented, ast.Name, ast.Attribute))
        made_here = self.without_gradients == "function" and (fact.fresh or self.is_exclusive(store.key))
        if carried and not made_here:
            self.doubt(f"`{self._tree_text(store)}` requires no gradient")

    def _origins(self, fact: Tensor) -> tuple[frozenset[Key], str]:
        """Where the gradient of a tensor ends up, and the operation on the way whose derivative can be infinite."""
        found: set[Key] = set()
        culprit, stack = "", list(fact.roots)
        while stack:
            root = stack.pop()
            if self.traceable and root in self.tensors.origins:
                further, operation = self.tensors.origins[root]
                culprit = culprit or operation
                stack.extend(further)
            else:
                found.add(root)
        return frozenset(found), culprit

    def _tree_text(self, store: Store) -> str:
        tree = store.tree
        return tree.text if isinstance(tree, Old) else self.text(store.place)


def reads(tree: Tree) -> set[str]:
    """The names and attributes that a value is computed from."""
    if isinstance(tree, Old):
        return {tree.text}
    if isinstance(tree, Choice):
        return reads(tree.then) | reads(tree.otherwise) | set(tree.predicate.reads)
    return set(read_names(tree))


def _comes_from(key: Key, origin: Key) -> bool:
    """Whether a dtype is what an operation makes of another one: they are equal for most tensors."""
    while isinstance(key, tuple) and key[0] in ("inexact", "int", "sum"):
        key = key[1]
        if key == origin:
            return True
    return False


def _same(first: ast.expr, second: ast.expr) -> bool:
    return ast.dump(first) == ast.dump(second)


def _bound(statement: ast.stmt) -> set[str]:
    """The names and attributes (`self.x`) that a statement binds."""
    found: set[str] = set()
    for part in ast.walk(statement):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
            found.add(ast.unparse(part))
    return found
