"""Arms: what each side of a branch gives to the names that are read after it.

An arm is run symbolically: assignments of tensor expressions become stores, nested tests become choices, and a name
that nobody reads later is kept as the statement that it is. All that an arm computes is computed in any case once the
branch is a selection, so each expression must be harmless.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from graphmend_lint.analysis.tensor_ops import INEXACT
from graphmend_lint.analysis.tensors import Fact, Hazard, Number, Other, Tensor, Tensors
from graphmend_lint.analysis.values import TENSOR, Env, Value
from graphmend_lint.findings import Reason
from graphmend_lint.transforms.carry import Obstacle
from graphmend_lint.transforms.predicate import Predicate, Predicates

#: By kind of hazard; the first of these that an expression has is the one that is told.
_REASONS = {
    "change": Reason.ARM_CHANGES_STATE,
    "random": Reason.ARM_DRAWS_RANDOM,
    "cost": Reason.ARM_IS_COSTLY,
    "read": Reason.ARM_READS_DATA,
    "call": Reason.ARM_CALLS_UNKNOWN,
    "raise": Reason.ARM_MAY_RAISE,
}


#: Operators whose assigning form gives, for a tensor that nothing else refers to, what the plain one gives.
SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Augmented(ast.BinOp):
    """`x + 1`, as it stands for `x += 1`: it is not in the source."""


@dataclass(frozen=True, slots=True)
class Old:
    """The value that a name, or an attribute, had before the branch."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two values, by a predicate."""

    predicate: Predicate
    then: Tree
    otherwise: Tree


#: The value of a store.
Tree = ast.expr | Old | Choice


@dataclass(frozen=True, slots=True)
class Store:
    """What an arm stores under `key` (a name, `self.x`, a buffer), and the statement that does it.

    `place` is the expression in `statement` that gives the value. `merged` are statements of the other arm that the
    store stands for as well.
    """

    key: str
    statement: ast.stmt
    place: ast.expr
    tree: Tree
    fact: Fact
    merged: tuple[ast.stmt, ...] = ()


@dataclass(slots=True)
class Arm:
    """What one side does: statements that are kept and stores in their order, or the values that it returns."""

    steps: list[ast.stmt | Store] = field(default_factory=list)
    returned: tuple[Store, ...] | None = None

    @property
    def stores(self) -> dict[str, Store]:
        return {step.key: step for step in self.steps if isinstance(step, Store)}


class Arms:
    """Runs the arms of one `if`.

    `is_live` tells whether a name is read after it, `is_exclusive` whether nothing else refers to the tensor in a name.
    """

    def __init__(
        self,
        tensors: Tensors,
        predicates: Predicates,
        text: Callable[[ast.expr], str],
        doubt: Callable[[str], None],
        is_live: Callable[[str], bool],
        is_exclusive: Callable[[str], bool],
        merge: Callable[[Predicate, Arm, Arm, Env], Arm],
        *,
        graded: bool,
    ) -> None:
        self.tensors, self.predicates, self.text, self.doubt = tensors, predicates, text, doubt
        self.is_live, self.is_exclusive, self.merge = is_live, is_exclusive, merge
        self.graded = graded

    def run(self, body: Iterable[ast.stmt], env: Env) -> Arm:
        """What a list of statements does; `env` becomes what holds after it.

        Raises:
            Obstacle: it does something that a selection cannot do, or must not do in any case.
        """
        arm = Arm()
        for statement in body:
            if arm.returned is not None:
                raise Obstacle(Reason.ARM_NOT_FOLLOWED, f"line {statement.lineno} follows a `return`")
            self._step(statement, env, arm)
        return arm

    def _step(self, statement: ast.stmt, env: Env, arm: Arm) -> None:
        line = statement.lineno
        if isinstance(statement, ast.Pass):
            return
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement, statement.targets[0], statement.value, env, arm)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement, statement.target, statement.value, env, arm)
        elif isinstance(statement, ast.AugAssign):
            self._augment(statement, env, arm)
        elif isinstance(statement, ast.Return):
            self._return(statement, env, arm)
        elif isinstance(statement, ast.If):
            self._nested(statement, env, arm)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._call(statement, statement.value, env, arm)
        elif isinstance(statement, (ast.Break, ast.Continue, ast.Raise)):
            raise Obstacle(Reason.ARM_LEAVES, f"line {line} leaves the branch")
        elif isinstance(statement, ast.Delete):
            raise Obstacle(Reason.ARM_CHANGES_STATE, f"line {line} deletes a name")
        elif not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
            raise Obstacle(Reason.ARM_NOT_FOLLOWED, f"line {line} is more than an assignment")

    def given(self, node: ast.expr, statement: ast.stmt, env: Env) -> Arm:
        """The arm of a conditional expression in `statement`."""
        return Arm(returned=(Store("value", statement, node, node, self._harmless(node, env)),))

    # -- statements --------------------------------------------------------------------------------------------

    def _assign(self, statement: ast.stmt, target: ast.expr, value: ast.expr, env: Env, arm: Arm) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            if len(elements) != len(target.elts) or any(not isinstance(t, ast.Name) for t in target.elts):
                raise Obstacle(Reason.ARM_NOT_FOLLOWED, f"line {statement.lineno} takes a value apart")
            facts = [self._harmless(element, env) for element in elements]
            for part, element, fact in zip(target.elts, elements, facts, strict=True):
                assert isinstance(part, ast.Name)
                if not self.is_live(part.id):
                    raise Obstacle(Reason.ARM_NOT_FOLLOWED, f"`{part.id}` is not read after the branch")
                self._store(Store(part.id, statement, element, element, fact), env, arm)
        elif isinstance(target, ast.Name):
            fact = self._harmless(value, env)
            if self.is_live(target.id):
                self._store(Store(target.id, statement, value, value, fact), env, arm)
            else:
                self._bind(target.id, value, fact, env)
                arm.steps.append(statement)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if self._moves_itself(target, value):
                self.doubt(f"line {statement.lineno} may run in any case")
                arm.steps.append(statement)
                return
            self._store(Store(self._source(target), statement, value, value, self._harmless(value, env)), env, arm)
        elif isinstance(target, ast.Subscript):
            self._check_harmless(self.tensors.fact(target.value, env).hazards)
            if not isinstance(target.slice, ast.Constant):
                raise Obstacle(Reason.ARM_CHANGES_STATE, f"line {statement.lineno} stores into `{self.text(target)}`")
            self._store(Store(self._source(target), statement, value, value, self._harmless(value, env)), env, arm)
        else:
            raise Obstacle(Reason.ARM_CHANGES_STATE, f"line {statement.lineno} stores into `{self.text(target)}`")

    def _moves_itself(self, target: ast.Attribute, value: ast.expr) -> bool:
        """Whether a store is `self.x = self.x.to(...)`: it only ever moves what is there."""
        moved = value.func if isinstance(value, ast.Call) else None
        return (
            isinstance(moved, ast.Attribute)
            and moved.attr == "to"
            and self._source(moved.value) == self._source(target)
        )

    def _augment(self, statement: ast.AugAssign, env: Env, arm: Arm) -> None:
        """`x += 1` changes the tensor itself: the same as a new one only if nothing else refers to it."""
        target = statement.target
        if not isinstance(target, ast.Name):
            raise Obstacle(Reason.ARM_CHANGES_STATE, f"line {statement.lineno} changes `{self.text(target)}` in place")
        known = env.get(target.id)
        before = known.fact if known is not None else None
        if type(statement.op) not in SIGNS or not self.is_exclusive(target.id):
            raise Obstacle(Reason.ARM_CHANGES_STATE, f"line {statement.lineno} changes `{target.id}` in place")
        loaded = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        whole = ast.copy_location(ast.BinOp(loaded, statement.op, statement.value), statement)
        fact = self._harmless(whole, env)
        if isinstance(before, Tensor) and isinstance(fact, Tensor):
            if (fact.shape, fact.dtype.key) != (before.shape, before.dtype.key):
                raise Obstacle(Reason.ARM_MAY_RAISE, f"line {statement.lineno} may not fit into `{target.id}`")
            if self.graded and fact.dtype.classes & INEXACT:
                # autograd refuses to go back through a tensor that it kept and that was changed since
                self.doubt(f"no gradient needs `{target.id}` as it was before line {statement.lineno}")
            tree = ast.copy_location(Augmented(loaded, statement.op, statement.value), statement)
            self._store(Store(target.id, statement, whole, tree, fact), env, arm)
            return
        raise Obstacle(Reason.VALUES_NOT_TENSORS, f"`{target.id}` is not known to be a tensor")

    def _return(self, statement: ast.Return, env: Env, arm: Arm) -> None:
        value = statement.value
        if value is None:
            raise Obstacle(Reason.ARM_LEAVES, f"line {statement.lineno} returns nothing")
        if isinstance(value, ast.Tuple) and not value.elts:
            raise Obstacle(Reason.VALUES_NOT_TENSORS, f"line {statement.lineno} returns an empty tuple")
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        kind = "a tuple of" if isinstance(value, ast.Tuple) else "value"
        if any(isinstance(part, ast.Starred) for part in parts):
            raise Obstacle(Reason.ARM_NOT_FOLLOWED, f"line {statement.lineno} returns a list of unknown length")
        arm.returned = tuple(
            Store(f"return {number} of {kind} {len(parts)}", statement, part, part, self._harmless(part, env))
            for number, part in enumerate(parts)
        )

    def _nested(self, statement: ast.If, env: Env, arm: Arm) -> None:
        if self._fills_in(statement):
            self.doubt(f"what line {statement.lineno} makes once may be made in any case")
            arm.steps.append(statement)
            return
        test = self.tensors.of(statement.test, dict(env)).kind
        if test not in ("tensor", "data"):
            raise Obstacle(Reason.ARM_NOT_FOLLOWED, f"the test of line {statement.lineno} stays in Python")
        split = self.predicates.split(statement.test, env)
        # the static parts have their say again in any case: they are part of the predicate here
        predicate = self.predicates.read((*split.static_parts, *split.rest), env)
        for part in (*split.static_parts, *split.rest):
            self._check_harmless(self._hazards_of_test(part, env))
        then_env, else_env = dict(env), dict(env)
        then, otherwise = self.run(statement.body, then_env), self.run(statement.orelse, else_env)
        made = self.merge(predicate, then, otherwise, env)
        if again := arm.stores.keys() & made.stores.keys():
            raise Obstacle(Reason.NAMES_INTERTWINED, f"line {statement.lineno} assigns `{min(again)}` again")
        arm.steps += made.steps
        arm.returned = made.returned
        for store in made.stores.values():
            self._bind(store.key, store.place, store.fact, env)

    def _hazards_of_test(self, node: ast.expr, env: Env) -> tuple[Hazard, ...]:
        if isinstance(node, ast.BoolOp):
            return tuple(hazard for value in node.values for hazard in self._hazards_of_test(value, env))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._hazards_of_test(node.operand, env)
        return self.tensors.fact(node, dict(env)).hazards

    def _fills_in(self, statement: ast.If) -> bool:
        """Whether a statement is `if not hasattr(self, "x"): self.x = ...`: it runs once, whenever that is."""
        test = statement.test
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        call = test.operand if isinstance(test, ast.UnaryOp) and negated else None
        if not isinstance(call, ast.Call) or len(call.args) != 2 or statement.orelse or len(statement.body) != 1:
            return False
        owner, name = call.args
        if self.tensors.bindings.qualified(call.func, self.tensors.scope) != "builtins.hasattr":
            return False
        filled = statement.body[0]
        if not isinstance(filled, ast.Assign) or not isinstance(name, ast.Constant) or not isinstance(owner, ast.Name):
            return False
        stored = [n for t in filled.targets for n in ast.walk(t) if isinstance(n, ast.Attribute)]
        return any(n.attr == name.value and self._source(n.value) == owner.id for n in stored) and len(stored) == 1

    def _call(self, statement: ast.Expr, call: ast.Call, env: Env, arm: Arm) -> None:
        """`self.register_buffer("x", value, ...)` is a store; no other call is followed."""
        func = call.func
        named = isinstance(func, ast.Attribute) and func.attr == "register_buffer" and isinstance(func.value, ast.Name)
        if not named or len(call.args) != 2 or not isinstance(call.args[0], ast.Constant):
            raise Obstacle(Reason.ARM_CALLS_UNKNOWN, f"`{self.text(call)}` runs only where the branch is taken")
        value = call.args[1]
        rest = ", ".join(f"{k.arg}={ast.dump(k.value)}" for k in call.keywords)
        fact = self.tensors.fact(value, env)
        if isinstance(fact, Other):
            # what is registered as a buffer is a tensor, whatever its attribute is known as
            fact = self.tensors.unknown()
        key = f"{self._source(func)}({call.args[0].value!r}, {rest})"
        self._store(Store(key, statement, value, value, fact), env, arm)

    # -- values ------------------------------------------------------------------------------------------------

    def _store(self, store: Store, env: Env, arm: Arm) -> None:
        if store.key in arm.stores:
            raise Obstacle(Reason.NAMES_INTERTWINED, f"line {store.statement.lineno} assigns `{store.key}` again")
        arm.steps.append(store)
        self._bind(store.key, store.place, store.fact, env)

    def _bind(self, name: str, node: ast.expr, fact: Fact, env: Env) -> None:
        if not name.isidentifier():
            return
        if isinstance(fact, Tensor):
            env[name] = replace(TENSOR, fact=replace(fact, hazards=()))
        elif isinstance(fact, Number) and fact.type:
            env[name] = Value("static", fact.type, fact=replace(fact, hazards=()))
        else:
            env[name] = self.tensors.of(node, dict(env))

    def _harmless(self, node: ast.expr, env: Env) -> Fact:
        """The facts of an expression that will be computed in any case.

        Raises:
            Obstacle: that would be seen.
        """
        fact = self.tensors.fact(node, env)
        self._check_harmless(fact.hazards)
        return fact

    def _check_harmless(self, hazards: Iterable[Hazard]) -> None:
        hazards = list(hazards)
        certain = [hazard for hazard in hazards if not hazard.unless]
        if certain:
            worst = min(certain, key=lambda hazard: list(_REASONS).index(hazard.kind))
            raise Obstacle(_REASONS[worst.kind], worst.text)
        for hazard in hazards:
            self.doubt(hazard.unless)

    def _source(self, node: ast.expr) -> str:
        return ast.unparse(node)
