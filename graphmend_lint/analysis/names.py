"""Dotted names: how an expression spells what it refers to."""

from __future__ import annotations

import ast

#: Tests that Dynamo knows the answer to while it traces, by the name that they resolve to.
TRUE_WHILE_TRACING = frozenset(
    {
        "torch.compiler.is_compiling",
        "torch.compiler.is_dynamo_compiling",
        "torch._dynamo.is_compiling",
        "torch._dynamo.external_utils.is_compiling",
        "torch._utils.is_compiling",
        "transformers.utils.is_torchdynamo_compiling",
        "transformers.utils.import_utils.is_torchdynamo_compiling",
    }
)
FALSE_WHILE_TRACING = frozenset(
    {
        "torch.jit.is_scripting",
        "torch.jit.is_tracing",
        "torch._C._get_tracing_state",
        "torch.onnx.is_in_onnx_export",
        "typing.TYPE_CHECKING",
    }
)
#: The last part alone decides where the import cannot be followed: nobody else uses these names.
_TRUE_BY_LAST_PART = frozenset({"is_torchdynamo_compiling", "is_dynamo_compiling", "is_compiling"})


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for a chain of attributes on a name, None for anything else.

    `super().f` is spelled `super.f`, so that calls to a base class can be followed.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and parts:
        parts.append("super")
    else:
        return None
    return ".".join(reversed(parts))


def known_while_tracing(qualified: str) -> bool | None:
    """Whether a call of the function `qualified` is True or False under Dynamo, None if it is neither."""
    if qualified in FALSE_WHILE_TRACING:
        return False
    if qualified in TRUE_WHILE_TRACING or qualified.rpartition(".")[2] in _TRUE_BY_LAST_PART:
        return True
    return None
