"""The plugin with every class tracked and every function analysed, as mypy loads it for the corpus: it also takes the time of each file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from oxidecopy.mypy_plugin._plugin import OxidecopyPlugin

if TYPE_CHECKING:
    from mypy.plugin import Plugin

    from oxidecopy.mypy_plugin._after import Waiting


class Everything(OxidecopyPlugin):
    """What it counted is in the class: mypy makes the instance, and gives nobody a way to it."""

    everything: ClassVar[bool] = True
    seconds: ClassVar[dict[str, tuple[float, int]]] = {}  # of the pass, with the functions analysed, by module

    @override
    def _analyse(self, waiting: Waiting) -> None:
        before = type(self).functions
        with _timed() as took:
            super()._analyse(waiting)
        if waiting.checker.tree.is_stub:
            return  # mypy brings Python's own stubs: functions without bodies are no code that was looked at
        seconds, functions = type(self).seconds.get(waiting.checker.tree.fullname, (0.0, 0))  # files of an import cycle come several times
        type(self).seconds[waiting.checker.tree.fullname] = seconds + took[0], functions + type(self).functions - before


@contextmanager
def _timed() -> Iterator[list[float]]:
    took = [0.0]
    start = process_time()
    yield took
    took[0] = process_time() - start


def plugin(_: str) -> type[Plugin]:
    """What mypy calls."""
    return Everything
