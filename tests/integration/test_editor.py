"""`fixit lsp` as an editor drives it: diagnostics while typing, and the fixes as formatting."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import lsprotocol.types as lsp
import pytest
from pygls.lsp.client import LanguageClient

from tests.cli.project import DECLINED, FIXED, MODEL, ROOT

PYPROJECT = """\
[tool.fixit]
enable = ["graphmend"]
disable = ["fixit.rules"]
"""
HELPERS = "import torch\n\n\ndef say(h):\n    print(h.shape)\n"
CALLER = "import torch\nfrom helpers import say\n\n\ndef f(x: torch.Tensor):\n    say(x)\n    return x\n"


class Editor:
    """An editor with one folder, and what the server told it about each file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("a test", "1")
        self._told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self._version = 0

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
        def told(params: lsp.PublishDiagnosticsParams) -> None:
            self._told.put_nowait(params)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    async def open(self, name: str, text: str) -> list[lsp.Diagnostic]:
        item = lsp.TextDocumentItem(self.uri(name), lsp.LanguageKind.Python, self._next(), text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self._diagnostics()

    async def type(self, name: str, text: str) -> list[lsp.Diagnostic]:
        document = lsp.VersionedTextDocumentIdentifier(self._next(), self.uri(name))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))
        return await self._diagnostics()

    async def format(self, name: str) -> str | None:
        options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
        document = lsp.TextDocumentIdentifier(self.uri(name))
        request = self.client.text_document_formatting_async(lsp.DocumentFormattingParams(document, options))
        edits = await asyncio.wait_for(request, 60)
        if not edits:
            return None
        (edit,) = edits
        assert (edit.range.start.line, edit.range.start.character) == (0, 0)
        return edit.new_text

    def _next(self) -> int:
        self._version += 1
        return self._version

    async def _diagnostics(self) -> list[lsp.Diagnostic]:
        while True:
            told = await asyncio.wait_for(self._told.get(), 60)
            if told.version == self._version:
                return list(told.diagnostics)


@asynccontextmanager
async def editing(folder: Path, *, rules: tuple[str, ...] = ()) -> AsyncIterator[Editor]:
    editor = Editor(folder)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "rules")])
    environment = {**os.environ, "PYTHONPATH": paths, "GRAPHMEND_CACHE_DIR": str(folder / ".cache")}
    command = ["-m", "fixit", *rules, "lsp", "--stdio", "true", "--debounce-interval", "0.1"]
    await editor.client.start_io(sys.executable, *command, cwd=folder, env=environment)
    root = lsp.WorkspaceFolder(folder.as_uri(), "project")
    started = editor.client.initialize_async(
        lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=root.uri, workspace_folders=[root])
    )
    abilities = (await asyncio.wait_for(started, 60)).capabilities
    assert abilities.document_formatting_provider
    editor.client.initialized(lsp.InitializedParams())
    try:
        yield editor
        await asyncio.wait_for(editor.client.shutdown_async(None), 60)
        editor.client.exit(None)
    finally:
        stopping: Coroutine[Any, Any, None] = editor.client.stop()  # type: ignore[no-untyped-call]
        await asyncio.wait_for(stopping, 60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return tmp_path


Story = Callable[[Editor], Coroutine[Any, Any, None]]


def drive(folder: Path, story: Story, **options: Any) -> None:
    async def run() -> None:
        async with editing(folder, **options) as editor:
            await story(editor)

    asyncio.run(run())


def test_diagnostics_and_fixes(folder: Path) -> None:
    (folder / "model.py").write_text("x = 1\n")

    async def story(editor: Editor) -> None:
        assert await editor.open("model.py", "x = 1\n") == []
        (found,) = await editor.type("model.py", MODEL)
        assert (found.code, found.source) == ("GM201", "fixit")
        assert found.message == "`print(...)` ends the graph (GB0059); defer it until the graph runs"
        start, end = found.range.start, found.range.end
        assert (start.line, start.character, end.line, end.character) == (6, 8, 6, 31)
        assert await editor.format("model.py") == FIXED
        assert await editor.type("model.py", FIXED) == []
        assert await editor.format("model.py") in (None, FIXED)
        (found,) = await editor.type("model.py", DECLINED)
        assert "not fixed" in found.message
        assert await editor.format("model.py") in (None, DECLINED)
        assert await editor.type("model.py", "def f(:\n") == []
        (found,) = await editor.type("model.py", MODEL)
        assert found.code == "GM201"

    drive(folder, story)
    assert (folder / "model.py").read_text() == "x = 1\n", "the editor writes, not the server"


def test_the_rules_can_be_named_on_the_command_line(tmp_path: Path) -> None:
    async def story(editor: Editor) -> None:
        assert [found.code for found in await editor.open("model.py", MODEL)] == ["GM201"]

    drive(tmp_path, story, rules=("--rules", "graphmend"))


def test_our_configuration_and_suppressions_count(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        f'{PYPROJECT}\n[tool.graphmend]\nper-file-ignores = {{ "a.py" = ["GM201"] }}\n'
    )

    async def story(editor: Editor) -> None:
        assert await editor.open("a.py", MODEL) == []
        assert await editor.open("b.py", MODEL.replace("x.shape)", "x.shape)  # noqa: GM201")) == []
        assert len(await editor.open("c.py", MODEL)) == 1

    drive(folder, story)


def test_other_files_count_as_they_are_on_the_disk(folder: Path) -> None:
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "caller.py").write_text(CALLER)

    async def story(editor: Editor) -> None:
        assert await editor.open("helpers.py", HELPERS) == []
        (folder / "caller.py").write_text(CALLER.replace("def f", "@torch.compile\ndef f"))
        found: list[lsp.Diagnostic] = []
        for spaces in range(1, 30):  # until the server looks at the disk again
            await asyncio.sleep(0.5)
            found = await editor.type("helpers.py", HELPERS + "\n" * spaces)
            if found:
                break
        assert [one.code for one in found] == ["GM201"]

    drive(folder, story)
