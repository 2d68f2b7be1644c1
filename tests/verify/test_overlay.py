"""The overlay changes the code of a module and nothing else about it. No torch is needed for that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, inspect, traceback, importlib.util
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from graphmend_lint.verify.worker import overlay
overlay.install(Path(sys.argv[3]))
import pack.part as part
assert part.__file__ == sys.argv[4], part.__file__
assert part.__package__ == "pack"
assert part.value() == "fixed beside"
assert part.__spec__.loader.get_source("pack.part").startswith("# fixed")
assert "return 'fixed '" in inspect.getsource(part.value)
try:
    part.fail()
except ValueError as error:
    assert "raise ValueError('fixed')" in "".join(traceback.format_exception(error))
spec = importlib.util.spec_from_file_location("elsewhere", sys.argv[4], submodule_search_locations=None)
print("ok")
"""
ORIGINAL = "from .beside import name\ndef value():\n    return 'original ' + name\n"
FIXED = (
    "# fixed\nfrom .beside import name\ndef value():\n    return 'fixed ' + name\n"
    "def fail():\n    raise ValueError('fixed')\n"
)


def test_the_module_is_what_it_was_but_for_its_code(tmp_path: Path) -> None:
    package = tmp_path / "project" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "beside.py").write_text("name = 'beside'\n")
    part = package / "part.py"
    part.write_text(ORIGINAL)
    # Bytecode of the original is there already; it must not be what runs.
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(package)], check=True)
    before = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}
    fixed = tmp_path / "0-part.py"
    fixed.write_text(FIXED)
    manifest = tmp_path / "overlay.json"
    manifest.write_text(json.dumps({str(part): str(fixed)}))

    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM, str(package.parent), str(root), str(manifest), str(part)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout == "ok\n", done.stderr
    assert {path: path.read_bytes() for path in package.rglob("*") if path.is_file()} == before
