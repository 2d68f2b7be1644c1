"""How tightly expressions bind, and where they need parentheses."""

from __future__ import annotations

import libcst as cst

#: Levels of tightness, from the loosest: what needs parentheses everywhere, a tuple, `lambda`, `if`, `or`, ...
(
    NOWHERE,
    TUPLE,
    LAMBDA,
    CONDITIONAL,
    OR,
    AND,
    NOT,
    COMPARISON,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    SHIFT,
    SUM,
    PRODUCT,
    SIGN,
    POWER,
    AWAIT,
    PRIMARY,
) = range(18)

_BINARY: dict[type[cst.CSTNode], int] = {
    cst.Or: OR,
    cst.And: AND,
    cst.BitOr: BIT_OR,
    cst.BitXor: BIT_XOR,
    cst.BitAnd: BIT_AND,
    cst.LeftShift: SHIFT,
    cst.RightShift: SHIFT,
    cst.Add: SUM,
    cst.Subtract: SUM,
    cst.Multiply: PRODUCT,
    cst.MatrixMultiply: PRODUCT,
    cst.Divide: PRODUCT,
    cst.FloorDivide: PRODUCT,
    cst.Modulo: PRODUCT,
    cst.Power: POWER,
}
_OTHERS: dict[type[cst.CSTNode], int] = {
    cst.NamedExpr: NOWHERE,
    cst.Yield: NOWHERE,
    cst.GeneratorExp: NOWHERE,
    cst.StarredElement: NOWHERE,
    cst.Tuple: TUPLE,
    cst.Lambda: LAMBDA,
    cst.IfExp: CONDITIONAL,
    cst.Comparison: COMPARISON,
    cst.Await: AWAIT,
}


def tightness(node: cst.BaseExpression) -> int:
    """The level of an expression; one in parentheses is as tight as a name."""
    if node.lpar:
        return PRIMARY
    if isinstance(node, (cst.BooleanOperation, cst.BinaryOperation)):
        return _BINARY[type(node.operator)]
    if isinstance(node, cst.UnaryOperation):
        return NOT if isinstance(node.operator, cst.Not) else SIGN
    return _OTHERS.get(type(node), PRIMARY)


def wanted(parent: cst.CSTNode, child: cst.CSTNode) -> int:
    """The loosest level that needs no parentheses in the place that `child` has in `parent`."""
    if isinstance(parent, (cst.BooleanOperation, cst.BinaryOperation)):
        return _operand(parent, child)
    if isinstance(parent, cst.UnaryOperation):
        return NOT if isinstance(parent.operator, cst.Not) else SIGN
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.StarredElement, cst.StarredDictElement)):
        return BIT_OR
    if isinstance(parent, (cst.Attribute, cst.Subscript, cst.Await)) or (
        isinstance(parent, cst.Call) and parent.func is child
    ):
        return PRIMARY
    if isinstance(parent, (cst.CompFor, cst.CompIf)) or (isinstance(parent, cst.IfExp) and parent.orelse is not child):
        return OR
    if isinstance(parent, (cst.FormattedStringExpression, cst.Slice)):
        return CONDITIONAL
    if isinstance(parent, (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Return, cst.Expr, cst.For)):
        return TUPLE
    return LAMBDA


def _operand(parent: cst.BooleanOperation | cst.BinaryOperation, child: cst.CSTNode) -> int:
    level = _BINARY[type(parent.operator)]
    if isinstance(parent.operator, cst.Power):
        return SIGN if parent.right is child else AWAIT
    return level + 1 if parent.right is child else level


def fenced(node: cst.BaseExpression, level: int) -> cst.BaseExpression:
    """The expression, in parentheses if it is looser than `level`."""
    return node if tightness(node) >= level else parenthesised(node)


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])
