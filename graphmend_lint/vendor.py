"""Copy the runtime into a user's package, so that fixed code depends on torch alone."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from graphmend_lint import __version__

NAME = "graphmend_runtime.py"

_HEADER = "# graphmend-lint {version}, sha256 {digest}: made by `graphmend vendor`, which also updates it.\n"
_HEADER_OF_OURS = re.compile(rb"# graphmend-lint (\S+), sha256 ([0-9a-f]{64}): made by `graphmend vendor`[^\n]*\n")
_RUNTIME = Path(__file__).with_name("runtime.py")


def vendor(path: Path, *, force: bool = False) -> Path:
    """Write the runtime to `path` and return the file: `path` itself if it ends in `.py`,
    `graphmend_runtime.py` in a folder.

    The first line of the copy names its version and a digest of the rest. An existing file is overwritten
    only if it is an unedited copy, not newer than this version, or if `force` is given. The file is replaced
    atomically.

    Raises `ValueError` for a target that is refused and `OSError` for one that cannot be read or written.
    """
    target = _target(path)
    source = _RUNTIME.read_bytes()
    content = _HEADER.format(version=__version__, digest=_digest(source)).encode() + source
    if target.exists():
        existing = target.read_bytes()
        if existing == content:
            return target
        if not force:
            _check_replaceable(target, existing)
    _write(target.resolve(), content)
    return target


def _target(path: Path) -> Path:
    if path.is_dir():
        return path / NAME
    if path.suffix != ".py":
        raise ValueError(f"{path}: neither a folder nor a .py file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such folder")
    return path


def _check_replaceable(target: Path, existing: bytes) -> None:
    header = _HEADER_OF_OURS.match(existing)
    if header is None:
        raise ValueError(f"{target}: not a copy of the runtime, left alone (--force overwrites it)")
    version = header[1].decode(errors="replace")
    if _digest(existing[header.end() :]) != header[2].decode():
        raise ValueError(f"{target}: edited since it was copied, left alone (--force overwrites it)")
    if _number(version) > _number(__version__):
        raise ValueError(f"{target}: of newer version {version}, left alone (--force overwrites it)")


def _digest(content: bytes) -> str:
    """Of the text, whatever the line ends: version control may change those on checkout."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _write(target: Path, content: bytes) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
