"""Recipes: how a file's pipeline is launched from the command line, and what its result must be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.host.bound import BoundLaunch
    from oxidecopy.typed.global_array import GlobalArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One launch, ready to run, with what it must give.

    Attributes:
        launch: `pipe[grid].bind(...)`.
        outputs: result arrays by name; the first is what `--output` writes.
        expected: what each output must equal: exactly, but for those of `within`.
        within: how far elements of an output may be from what is expected, where its last digits depend on the engine: sums on tensor
            cores, transcendental functions.
    """

    launch: BoundLaunch
    outputs: Mapping[str, GlobalArray[Any, Any]]
    expected: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)


@final
class RecipeFunction:
    """A user's recipe: called with a device and at most `inputs` arrays.

    `refused` is the id of the rule that this launch must break, for a twin that is wrong on purpose; "" for a launch that must run.
    """

    def __init__(self, fn: Callable[..., Recipe], *, refused: str = "") -> None:
        self.fn = fn
        self.name = fn.__name__
        self.refused = refused

    @property
    def inputs(self) -> int:
        """How many input arrays it takes."""
        return len(inspect.signature(self.fn).parameters) - 1

    def __call__(self, device: object, *arrays: npt.NDArray[Any]) -> Recipe:
        """The launch on `device`, of these input arrays or of the recipe's own."""
        return self.fn(device, *arrays)
