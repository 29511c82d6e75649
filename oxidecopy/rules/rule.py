"""The shape of a rule's page: the data that `oxidecopy explain` prints and the tests run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

Shown: TypeAlias = Literal["raised", "warned", "typed", "gpu"]

# What a page says behind "Wrong" and "Right", and what the first digit of an id stands for.
SHOWN: Final[dict[Shown, str]] = {
    "raised": "",
    "warned": "  (it runs: see `warnings`)",
    "typed": "  (for a type checker)",
    "gpu": "  (`dev` is a GPU)",
}
GATES: Final = {
    "1": "recording",
    "2": "tensor maps",
    "3": "verifier",
    "4": "while it runs",
    "5": "arrays, devices and files",
    "6": "command line",
    "7": "mypy plugin",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the product.

    Attributes:
        id: ``OX`` and four digits: 1 recorder, 2 descriptor, 3 verifier, 4 run time, 5 arrays, devices and files, 6 command line,
            7 mypy plugin.
        title: the rule in one line, as a statement of what must hold.
        error: name of the class in `oxidecopy.errors` that carries it.
        why: what goes wrong on the hardware otherwise.
        source: where the rule comes from: a PTX ISA section, a driver API call, a measured result.
        wrong: a short script that breaks the rule; it runs with `ox`, `np` and `dev` (the simulator) defined.
        right: its smallest fix.
        shown: how. "raised": wrong raises `error`, right runs. "warned": both run and leave what they were told in `warnings`. "typed": a
            type checker with the plugin reports wrong, and nothing runs. "gpu": as "raised", but `dev` is a GPU.
    """

    id: str
    title: str
    error: str
    why: str
    source: str
    wrong: str = ""
    right: str = ""
    shown: Shown = "raised"
