"""Files that cannot be linted: one line that names the file, exit code 2, nothing written, and the others go on.

The cases are named; each is linted and fixed beside a sound file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from graphmend_lint.analysis import source
from tests.cli.privileges import as_anyone
from tests.cli.project import FIXED, MODEL, Project, compiled


def deep(expression: str) -> str:
    return compiled('print("x")', f"y = {expression}")


ELIFS = "".join(f"elif flag == {number}:\n    pass\n" for number in range(1500))

#: What is in the file, and what is said of it.
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "syntax error": (b"import torch\ndef f(:\n", "line 2: invalid syntax"),
    "syntax error without torch": (b"x = = 1\n", "line 1: invalid syntax"),
    "python 2": (b"import torch\nprint 'hello'\n", "line 2: Missing parentheses in call to 'print'"),
    "python 2 exception": (b"import torch\ntry:\n    pass\nexcept A, e:\n    pass\n", "line 4: "),
    "tabs and spaces": (b"import torch\nif 1:\n\tx = 1\n        y = 2\n", "line 4: inconsistent use of tabs"),
    "unindented": (b"import torch\nif 1:\nx = 1\n", "line 3: expected an indented block"),
    "unterminated string": (b"import torch\nx = '''\n", "line 2: unterminated triple-quoted string"),
    "not utf-8": (b"import torch\nx = '\xe9'\n", "not readable as text: "),
    "not utf-8 without torch": (b"x = '\xe9'\n", "not readable as text: "),
    "utf-16": (MODEL.encode("utf-16"), "not readable as text: "),
    "utf-16 without a mark": (MODEL.encode("utf-16-le"), "not readable as text: "),
    "nul byte": (MODEL.replace("shape", "sh\0pe").encode(), "not readable as text: it holds a NUL byte"),
    "binary": (bytes(range(256)) * 40, "not readable as text: "),
    "unknown encoding": (b"# coding: klingon\n" + MODEL.encode(), "not readable as text: unknown encoding"),
    "encoding of bytes": (b"# coding: hex\n" + MODEL.encode(), "not readable as text: 'hex' is not a text encoding"),
    "undefined encoding": (b"# coding: undefined\n" + MODEL.encode(), "not readable as text: "),
    "punycode": (b"# coding: punycode\n" + MODEL.encode(), "not readable as text: "),
    "mark against coding line": (b"\xef\xbb\xbf# coding: latin-1\n" + MODEL.encode(), "not readable as text: "),
    "half a character": ("x = 'é'  # torch\n".encode().replace(b"\xa9", b""), "not readable as text: "),
    "lone surrogate": (b"# coding: unicode_escape\nimport torch\nx = '\\ud800'\n", ""),
    "5000 parentheses": (deep("(" * 5000 + "1" + ")" * 5000).encode(), "line 10: too many nested parentheses"),
    "5000 open parentheses": (deep("(" * 5000).encode(), "line 10: too many nested parentheses"),
    "5000 brackets without torch": (b"y = " + b"[" * 5000 + b"]" * 5000, "line 1: too many nested parentheses"),
    "9000 terms": (deep(" + ".join(["x"] * 9000)).encode(), "nested too deeply"),
    "5000 attributes": (deep("x" + ".a" * 5000).encode(), "nested too deeply"),
    "5000 signs": (deep("-" * 5000 + "1").encode(), "nested too deeply"),
    "200 blocks": (
        "".join(f"{' ' * n}if torch:\n" for n in range(200)).encode(),
        "line 101: too many levels of indent",
    ),
}


@pytest.fixture
def sound(project: Project) -> Project:
    """A project with one file that can be linted and fixed."""
    project.write("sound.py")
    return project


@pytest.mark.parametrize(("content", "says"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_content(sound: Project, content: bytes, says: str) -> None:
    sound.write("bad.py", content)
    outcome = sound.run("lint")
    assert outcome.code == 2
    (line,) = outcome.errors
    assert line.startswith(f"bad.py: error: {says}")
    assert outcome.lines[0].startswith("sound.py:7:9: GM201 ")
    assert outcome.lines[1].startswith("1 file could not be linted. ")
    assert sound.run("lint", "bad.py").code == 2
    fixing = sound.run("fix")
    assert fixing.code == 2
    assert fixing.errors == [line]
    assert sound.raw("bad.py") == content
    assert sound.read("sound.py") == FIXED
    assert set(sound.files()) == {"bad.py", "sound.py", "pyproject.toml"}


@pytest.mark.parametrize("name", ["syntax error", "not utf-8", "undefined encoding", "5000 attributes"])
def test_unreadable_content_on_stdin(sound: Project, name: str) -> None:
    content, says = UNREADABLE[name]
    lint = sound.run("lint", "-", "--stdin-filename", "bad.py", stdin=content)
    assert lint.code == 2
    assert [line.startswith(f"bad.py: error: {says}") for line in lint.errors] == [True]
    fix = sound.run("fix", "-", "--stdin-filename", "bad.py", stdin=content)
    assert fix.code == 2
    assert [line.startswith(f"error: bad.py: {says}") for line in fix.errors] == [True]
    assert fix.raw == content


def test_an_unreadable_neighbour_is_not_named_where_it_was_not_asked_for(sound: Project) -> None:
    sound.write("bad.py", "def f(:\n")
    outcome = sound.run("lint", "sound.py")
    assert (outcome.code, outcome.err) == (1, "")


def test_many_unreadable_files(sound: Project) -> None:
    """Enough for several processes."""
    for number, (content, _) in enumerate(UNREADABLE.values()):
        sound.write(f"bad{number:02}.py", content)
    outcome = sound.run("lint", "-j", "2")
    assert outcome.code == 2
    assert [line.partition(":")[0] for line in outcome.errors] == [f"bad{n:02}.py" for n in range(len(UNREADABLE))]


# --- odd but sound


SOUND: dict[str, bytes] = {
    "empty": b"",
    "only a mark": b"\xef\xbb\xbf",
    "only a comment": b"# torch",
    "only a newline": b"\n",
    "only a form feed": b"\x0c",
    "only a coding line": b"# coding: latin-1",
    "no code": b'"""torch"""',
    "400 blocks": "".join(f"if {n}:\n    pass\n" for n in range(400)).encode(),
    "escapes": b"import torch\nx = '\\d'\n",
    "end of file mark": b"import torch  # \x1a\n",
}


@pytest.mark.parametrize("content", SOUND.values(), ids=SOUND.keys())
def test_odd_but_sound(project: Project, content: bytes) -> None:
    project.write("odd.py", content)
    for command in ("lint", "fix"):
        outcome = project.run(command, "-q")
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert project.raw("odd.py") == content


DEEP = {
    "400 terms": " + ".join(["x"] * 400),
    "150 parentheses": "(" * 150 + "1" + ")" * 150,
    "100 attributes": "x" + ".a" * 100,
    "100 calls": "x" + ".abs()" * 100,
    "100 nots": "not " * 100 + "flag",
    "3000 alternatives": " or ".join(["flag"] * 3000),
    "5000 elements": "[" + ", ".join(["1"] * 5000) + "]",
}


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP.keys())
def test_deep_but_sound(project: Project, expression: str) -> None:
    project.write("deep.py", deep(expression))
    assert project.lines_of() == [9]
    assert project.run("fix").lines == ["Fixed 1 in 1 files, 0 left."]
    assert f"    y = {expression}\n" in project.read("deep.py")


def test_deep_without_torch(sound: Project) -> None:
    """Some versions of Python parse it."""
    sound.write("deep.py", " + ".join(["1"] * 9000))
    outcome = sound.run("lint")
    assert outcome.errors in ([], ["deep.py: error: nested too deeply to parse"])
    assert outcome.code == (2 if outcome.errors else 1)
    assert outcome.lines[0].startswith("sound.py:7:9: GM201 ")


@pytest.mark.parametrize("where", ["module", "function"])
def test_1500_elifs(sound: Project, where: str) -> None:
    """More than Python itself compiles: linted, or said to be too deep, but never a crash or silence."""
    chain = f"if flag == 'a':\n    pass\n{ELIFS}"
    in_function = compiled('print("x")', *chain.splitlines())
    content = in_function if where == "function" else f"flag = 1\n{chain}\n{MODEL}"
    sound.write("elifs.py", content)
    outcome = sound.run("lint")
    if outcome.code == 2:
        assert outcome.errors == ["elifs.py: error: nested too deeply to analyse"]
    else:
        assert outcome.lines[0].startswith("elifs.py:")
    assert outcome.lines[-2].startswith("sound.py:7:9: GM201 ")


def test_warnings_about_the_linted_code_are_not_shown(project: Project) -> None:
    project.write("a.py", "import torch\nx = '\\d'\nassert (x, 'always')\n")
    project.write("b.py", "x = '\\d'\nif x is 'd': pass\n")
    outcome = project.process("lint", env={"PYTHONWARNINGS": "always"})
    assert (outcome.code, outcome.err) == (0, "")


# --- not a file


def test_a_large_file(sound: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 2000)
    content = MODEL + "#" * 2000
    sound.write("large.py", content)
    outcome = sound.run("lint")
    assert outcome.code == 2
    assert outcome.errors == ["large.py: error: larger than 0 MB, not linted"]
    assert sound.run("fix").code == 2
    assert sound.read("large.py") == content
    assert sound.read("sound.py") == FIXED


@pytest.mark.skipif(sys.platform == "win32", reason="files have no read permission there")
def test_a_file_without_permission(sound: Project) -> None:
    path = sound.write("secret.py")
    path.chmod(0)
    outcome = sound.process("fix", preexec_fn=as_anyone())
    path.chmod(0o644)
    assert outcome.code == 2
    assert outcome.errors == ["secret.py: error: permission denied"]
    assert path.read_text() == MODEL
    assert sound.read("sound.py") == FIXED


def test_missing_paths(sound: Project) -> None:
    outcome = sound.run("lint", "missing.py", "no/folder", "sound.py", "sound.py/inner.py")
    assert outcome.code == 2
    assert sorted(outcome.errors) == [
        "missing.py: error: no such file or directory",
        "no/folder: error: no such file or directory",
        "sound.py/inner.py: error: not a directory",
    ]
    assert outcome.lines[0].startswith("sound.py:7:9: GM201 ")
    assert sound.run("fix", "missing.py").code == 2


def test_a_folder_named_like_a_file(sound: Project) -> None:
    sound.write("x.py/inner.py")
    assert [Path(f["path"]).name for f in sound.findings()] == ["sound.py", "inner.py"]
    assert [Path(f["path"]).name for f in sound.findings("x.py")] == ["inner.py"]


def test_a_dangling_link(sound: Project) -> None:
    (sound.folder / "link.py").symlink_to("nowhere.py")
    for args in (["lint"], ["lint", "link.py", "sound.py"]):
        outcome = sound.run(*args)
        assert outcome.code == 2
        assert outcome.errors == ["link.py: error: no such file or directory"]
        assert outcome.lines[0].startswith("sound.py:7:9: GM201 ")


def test_links_in_circles(sound: Project) -> None:
    (sound.folder / "a.py").symlink_to("b.py")
    (sound.folder / "b.py").symlink_to("a.py")
    (sound.folder / "here").symlink_to(".", target_is_directory=True)
    for args in (["lint"], ["lint", "a.py", "b.py", "sound.py"]):
        outcome = sound.run(*args)
        assert outcome.code == 2
        assert len(outcome.errors) == 2
        for name, line in zip(("a.py", "b.py"), outcome.errors, strict=True):
            assert line == f"{name}: error: too many levels of symbolic links"
        assert outcome.lines[0].startswith("sound.py:7:9: GM201 ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_hang(sound: Project) -> None:
    os.mkfifo(sound.folder / "pipe.py")
    for args in (["lint"], ["lint", "pipe.py", "sound.py"], ["lint", "-j", "2"]):
        outcome = sound.process(*args, timeout=20)
        assert outcome.code == 2
        assert outcome.errors == ["pipe.py: error: not a regular file"]
        assert outcome.lines[0].startswith("sound.py:7:9: GM201 ")


def test_a_device(sound: Project) -> None:
    assert sound.run("lint", os.devnull).errors == [f"{os.devnull}: error: not a regular file"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes exist on Linux only")
def test_a_name_that_is_not_utf_8(sound: Project) -> None:
    name = os.fsdecode(b"m\xe9.py")
    (sound.folder / name).write_text(MODEL)
    outcome = sound.process("lint")
    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    assert sum("GM201" in line for line in outcome.lines) == 2


def test_a_file_that_goes_away_meanwhile(sound: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend_lint import engine

    path = sound.write("gone.py")
    collect = engine.collect

    def and_remove(*args: object) -> object:
        found = collect(*args)  # type: ignore[arg-type]
        path.unlink()
        return found

    monkeypatch.setattr(engine, "collect", and_remove)
    outcome = sound.run("lint")
    assert outcome.code == 2
    assert outcome.errors == ["gone.py: error: no such file or directory"]


# --- bytes that a fix keeps

LATIN = ("# coding: latin-1\n" + MODEL.replace('"shape"', '"fläche"')).encode("latin-1")
KEPT: dict[str, bytes] = {
    "plain": MODEL.encode(),
    "crlf": MODEL.replace("\n", "\r\n").encode(),
    "mixed": MODEL.replace("\n\n\n", "\r\n\r\n\n").encode(),
    "mark": b"\xef\xbb\xbf" + MODEL.encode(),
    "mark and crlf": b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode(),
    "latin-1": LATIN,
    "cp1252": LATIN.replace(b"latin-1", b"cp1252").replace(b"fl\xe4che", b"\x80"),
    "utf-8 coding line": ("# -*- coding: utf-8 -*-\n" + MODEL.replace('"shape"', '"形"')).encode(),
    "tabs": MODEL.replace("    ", "\t").encode(),
    "two spaces": MODEL.replace("    ", "  ").encode(),
    "no final newline": MODEL.rstrip("\n").encode(),
    "trailing newlines": (MODEL + "\n\n\n").encode(),
    "trailing spaces": MODEL.replace("x)\n", "x)   \n").encode(),
    "form feed": MODEL.replace("\n\n\nclass", "\n\n\x0c\nclass").encode(),
    "continuation": MODEL.replace("        return", "        y = 1 + \\\n  2\n        return").encode(),
    "odd spacing": MODEL.replace('print("shape", x.shape)', 'print  ( "shape" ,x.shape )  ;y=1').encode(),
    "unicode separators": (MODEL + "# a\x0bb\x1cc\u2028d\n").encode(),
    "raw bytes in a comment": (b"# coding: latin-1\n# \x80\x81\xff\n" + MODEL.encode()),
}


@pytest.mark.parametrize("content", KEPT.values(), ids=KEPT.keys())
def test_a_fix_changes_no_other_byte(project: Project, content: bytes) -> None:
    project.write("model.py", content)
    outcome = project.run("fix")
    assert outcome.lines == ["Fixed 1 in 1 files, 0 left."]
    newline = b"\r\n" if b"import torch\r\n" in content else b"\n"
    expected = content.replace(
        b"import torch" + newline,
        b"import torch" + newline + b"from graphmend_lint.runtime import deferred" + newline,
        1,
    ).replace(b"print", b"deferred(print)")
    assert project.raw("model.py") == expected
    assert project.run("fix").lines == ["Fixed 0 in 0 files, 0 left."]
    assert project.raw("model.py") == expected


def test_old_mac_line_ends_are_declined(project: Project) -> None:
    """LibCST does not print them as they are."""
    content = MODEL.replace("\n", "\r").encode()
    project.write("model.py", content)
    assert project.lines_of() == [7]
    outcome = project.run("fix")
    assert outcome.code == 1
    assert outcome.lines[0].startswith("model.py:7:9: GM201 ")
    assert project.raw("model.py") == content
