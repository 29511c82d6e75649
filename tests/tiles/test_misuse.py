"""Whatever a method of a handle is given, what is raised is an error of this package: people without a checker see the same refusals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from tests.helpers.launching import Out, Src, descriptor

DEV: Final = ox.Device.open("sim-fast")
ARRAY: Final = DEV.zeros((32, 32), ox.f32)
ARGUMENTS_MAX: Final = 4

# What methods are called on, inside a pipeline.
TARGETS: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    "cta": lambda cta, _src, _out: cta,
    "src": lambda _cta, src, _out: src,
    "tile": lambda cta, src, _out: cta.shared(src),
    "barrier": lambda cta, _src, _out: cta.barrier(),
    "ready": lambda cta, _src, _out: cta.barrier().init(1),
    "barriers": lambda cta, _src, _out: cta.barriers(2).init(1),
    "leader": lambda cta, _src, _out: cta.elect().__enter__(),
    "warps": lambda cta, _src, _out: cta.warps(0, 1).__enter__(),
    "ring": lambda cta, src, _out: cta.ring(stages=2, tiles=(src,)),
    "store ring": lambda cta, src, _out: cta.store_ring(src, stages=2),
    "producer": lambda cta, _src, _out: cta.producer().__enter__(),
    "consumers": lambda cta, _src, _out: cta.consumers().__enter__(),
}
ROLES: Final = ("ring", "store ring", "producer", "consumers")


def things(cta: Any, src: Any, out: Any, n: Any) -> list[Any]:
    return [None, 3, 3.5, "x", (0, 0), [0], cta.shared(src), cta.barrier(), src, out, n, np.float32(1), object(), lambda v: v, n < 2]


def pipeline(name: str, body: Callable[[Any, Any, Any, Any], None]) -> ox.Pipeline[[Src, Out, int]]:
    def pipe(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
        body(cta, src, out, n)

    threads: Any = {"warps": ox.roles(producer=1, consumers=1)} if name in ROLES else {"threads": 64}
    decorate: Any = ox.pipeline
    made: ox.Pipeline[[Src, Out, int]] = decorate(**threads)(pipe)
    return made


def methods(name: str) -> list[str]:
    found: list[str] = []

    def look(cta: Any, src: Any, out: Any, _n: Any) -> None:
        kind = type(TARGETS[name](cta, src, out))
        found.extend(m for m in dir(kind) if not m.startswith("_") and callable(getattr(kind, m)))

    with suppress(OxidecopyError):  # a block that was entered is not left
        pipeline(name, look)[1].bind(descriptor(ARRAY), ARRAY, 3)
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_wrong_arguments(name: str) -> None:
    raised = set()
    for method in methods(name):
        for count, first in ((n, k) for n in range(ARGUMENTS_MAX + 1) for k in range(15 if n else 1)):

            def call(cta: Any, src: Any, out: Any, n: Any, method: str = method, count: int = count, first: int = first) -> None:
                target = TARGETS[name](cta, src, out)
                given = things(cta, src, out, n)
                block = getattr(target, method)(*(given[(first + 7 * i) % len(given)] for i in range(count)))
                if hasattr(block, "__enter__"):
                    with block:
                        pass

            try:
                pipeline(name, call)[1].bind(descriptor(ARRAY), ARRAY, 3)
            except OxidecopyError:
                continue
            except Exception as problem:  # that is what is looked for
                raised.add(f"{method}: {type(problem).__name__}: {problem}")
    assert methods(name)
    assert raised == set()
