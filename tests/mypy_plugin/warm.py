"""Mypy's cache of the library, of numpy and of Python's stubs: made once in a run of tests, whichever process needs it first.

Without it each test that runs mypy checks half a thousand files anew, which takes seconds. A test works on a copy of its own, so that none
sees what another one wrote. Like `project.py` this is used with any version of mypy: nothing of its inside may be imported here.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, final

LIBRARY: Final = "import oxidecopy.tiles.cta, oxidecopy.host.pipeline\nimport oxidecopy as ox\n"  # what makes mypy check all of it


@final
class Warm:
    """The caches, by what they depend on; `folder` is shared by all processes of the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def into(self, cache: Path, key: str, make: Callable[[Path], None]) -> None:
        """Fills the folder `cache`, which is not there yet; `make` fills one where none was made for this key."""
        shutil.copytree(self._made(key, make), cache)

    def _made(self, key: str, make: Callable[[Path], None]) -> Path:
        made = self._folder / f"warm-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        with made.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait here for the one that makes it
            if not made.exists():
                with tempfile.TemporaryDirectory(dir=self._folder) as half:
                    make(Path(half) / "cache")
                    (Path(half) / "cache").rename(made)
        return made


def importing(sources: Iterable[str]) -> str:
    """A module that imports the whole library, and all that these modules import."""
    trees = [ast.parse(source) for source in sources]
    found = {ast.unparse(node) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)}
    return LIBRARY + "".join(f"{line}\n" for line in sorted(found) if not line.startswith("from __future__"))
