"""Work in a forked process, which a fault of the GPU may take with it. The process that forks must not have used the driver yet."""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Callable, Iterator
from typing import Any


def told(work: Callable[[], Iterator[Any]], *, seconds: int) -> list[Any]:
    """What `work` yields in a process of its own, as far as it gets; each answer has so many seconds, else the process is ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(work, seconds, writing)
    os.close(writing)
    with os.fdopen(reading) as lines:
        answers = [json.loads(line) for line in lines]
    os.waitpid(child, 0)
    return answers


def _child(work: Callable[[], Iterator[Any]], seconds: int, writing: int) -> None:
    try:
        faulthandler.dump_traceback_later(seconds, exit=True)
        for answer in work():
            os.write(writing, (json.dumps(answer) + "\n").encode())
            faulthandler.dump_traceback_later(seconds, exit=True)
    finally:
        os._exit(0)  # whatever happens, nothing of what the parent was about to do is done here
