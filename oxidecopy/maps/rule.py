"""A rule of the validator as data, and one breach of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, final

from oxidecopy.errors import Diagnostic
from oxidecopy.maps.parameters import KINDS, Kind, MapParameters

if TYPE_CHECKING:
    from oxidecopy.maps.facts import Facts

Gate: TypeAlias = Literal["encodes", "usable", "advice"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A rule that does not hold.

    Attributes:
        what: the sentence of the diagnostic.
        got: value and, where one is missed, the multiple and the remainder.
        fix: the cheapest change, in words.
        mended: the parameters after that change; None where it is no change of parameters (another array, another device).
        required: the bound where it depends on other parameters; the rule's own when empty.
    """

    what: str
    got: str
    fix: str
    mended: MapParameters | None = None
    required: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MapRule:
    """One rule. Its page in `oxidecopy.rules` has its title, its reason and its source.

    Attributes:
        id: ``OX20xx``, advice ``OX21xx``.
        gate: "encodes" when the driver refuses a breach, "usable" when it encodes and no copy does what it says, "advice" for what is
            legal and almost surely wrong or slow.
        bound: what must hold, in words.
        check: finds the breaches.
        kinds: the calls that it is a rule of.
        when: of advice that only some uses of a map need: "stored through", say. Empty where every use does.
    """

    id: str
    gate: Gate
    bound: str
    check: Callable[[Facts], Iterator[Breach]]
    kinds: tuple[Kind, ...] = KINDS
    when: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A breach with its rule and the diagnostic made of both."""

    rule: MapRule
    breach: Breach
    diagnostic: Diagnostic
