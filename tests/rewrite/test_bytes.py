"""What a file is made of survives: line ends, encodings, tabs, odd ends."""

from __future__ import annotations

import codecs

import libcst as cst
import pytest

from graphmend_lint import rewrite
from graphmend_lint.rewrite import check
from tests.rewrite.conftest import SAMPLE, Planner

FIXED = rewrite.apply(cst.parse_module(SAMPLE), Planner().plan(SAMPLE), "r").text


def fixed(source: bytes) -> bytes:
    module = cst.parse_module(source)
    assert module.bytes == source
    return rewrite.apply(module, Planner().plan(module.code), "r").module.bytes


def test_sample() -> None:
    assert FIXED != SAMPLE
    assert FIXED.count("#") == SAMPLE.count("#")


def test_crlf() -> None:
    assert fixed(SAMPLE.replace("\n", "\r\n").encode()) == FIXED.replace("\n", "\r\n").encode()


def test_bom() -> None:
    assert fixed(codecs.BOM_UTF8 + SAMPLE.encode()) == codecs.BOM_UTF8 + FIXED.encode()


def test_latin_1() -> None:
    head = "# -*- coding: latin-1 -*-\nname = 'é'\n"
    source = head + "print('é', x)  # é\n"
    after = fixed(source.encode("latin-1")).decode("latin-1")
    assert after.endswith("name = 'é'\ndeferred(print)('é', x)  # é\n")


def test_tabs() -> None:
    assert b'\t\tdeferred(print)("nan")\n' in fixed(b'if a:\n\tif b:\n\t\tprint("nan")\n')
    lines = fixed(b'if a:\n\tlogger.info(\n\t\tf"a {x}"\n\t\t"b"\n\t)\n')
    assert b'\t\tformatted(\n\t\t\t"a {}"\n\t\t\t"b",\n\t\t\tx,\n\t\t)\n\t)\n' in lines


@pytest.mark.parametrize("end", ["", "\n\n", "\n# end", "\n\x0c\n", "\n    # deeper\n"])
def test_end(end: str) -> None:
    source = f"x = 1\nprint(x){end}"
    assert fixed(source.encode()).decode().endswith(f"x = 1\ndeferred(print)(x){end}")


def test_form_feed() -> None:
    assert b"\x0c\ndef f():\n    deferred(print)(1)\n" in fixed(b"x = 1\n\x0c\ndef f():\n    print(1)\n")


def test_mixed_line_ends() -> None:
    assert b"a = 1\r\ndeferred(print)(a)\nb = 2\r\n" in fixed(b"a = 1\r\nprint(a)\nb = 2\r\n")


def test_columns_are_characters() -> None:
    assert (
        fixed("a = '漢字'; print('é', f'é{a}')\n".encode())
        .decode()
        .endswith("a = '漢字'; deferred(print)('é', formatted('é{}', a))\n")
    )


# --- the safety net itself

BEFORE = "a = 1\nprint(a)  # c\nb = 2\nprint(b)\nc = 3\n"


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("a = 1", "a = 2"),
        BEFORE.replace("b = 2\n", ""),
        BEFORE.replace("c = 3", "c = 4"),
        BEFORE.replace("  # c", ""),
        BEFORE + "d = 4\n",
    ],
)
def test_a_change_elsewhere_is_noticed(after: str) -> None:
    with pytest.raises(check.NotFaithful):
        check.check_edits(BEFORE, after, [(2, 2), (4, 4)])


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        BEFORE.replace("print(a)", "p(\n    a,\n    b = 2\n)"),
        BEFORE.replace("print(b)", "b = 2\n"),
    ],
)
def test_a_change_of_the_lines_themselves_is_not(after: str) -> None:
    check.check_edits(BEFORE, after, [(4, 4), (2, 2)])


@pytest.mark.parametrize("after", ["import a\nx = 2\n", "import a\ny = 1\nx = 1\n", "x = 1\n", "import a\n"])
def test_more_than_an_import_is_noticed(after: str) -> None:
    with pytest.raises(check.NotFaithful):
        check.check_import("import a\nx = 1\n", after) if after != "x = 1\n" else check.check_import("y\n", after)


def test_an_import_is_not() -> None:
    check.check_import("import a\nx = 1\n", "import a\nfrom b import (\n    c,\n)\n\nx = 1\n")


def test_syntax() -> None:
    with pytest.raises(check.NotFaithful, match="does not parse"):
        check.check_syntax("return = 1\n")
