"""L2 cache policies for copies, as objects: `desc.g2s(leader, tile, coords, token, cache_hint=ox.cache.evict_first)`.

A policy changes speed, never results (PTX 9.7.9.18). `evict_first` is for what is read or written once, `evict_last` for what is wanted
again; `fractional` gives one policy to a part of the addresses and another to the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Never, final

from oxidecopy.errors import DTypeError, RecordError
from oxidecopy.isa.ops import CacheHint
from oxidecopy.typed.refusal import described, refuse, require


class CachePolicy:
    """What `cache_hint=` takes; the module's constants and `fractional` make them."""

    __slots__ = ("_hint",)
    _hint: CacheHint

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: Any, **__: Any) -> None:
            refuse(
                DTypeError,
                "OX1160",
                "a cache policy is not constructed directly",
                required="one of ox.cache",
                fix="cache_hint=ox.cache.evict_first, or ox.cache.fractional(...)",
            )

    def __repr__(self) -> str:
        hint = self._hint
        plain = hint == CacheHint(hint.primary)
        return f"ox.cache.{hint.primary}" if plain else f"ox.cache.fractional({hint.primary}, {hint.fraction}, rest={hint.secondary})"


class Eviction(CachePolicy):
    """A policy for all addresses."""

    __slots__ = ()


@final
class RestEviction(Eviction):
    """A policy that may also be that of the rest (PTX has two of these)."""

    __slots__ = ()


def _made(cls: type[Any], hint: CacheHint) -> Any:
    """Any: the caller knows the class."""
    policy = object.__new__(cls)
    policy._hint = hint
    return policy


evict_normal: Final[Eviction] = _made(Eviction, CacheHint("evict_normal"))
evict_first: Final[RestEviction] = _made(RestEviction, CacheHint("evict_first"))
evict_last: Final[Eviction] = _made(Eviction, CacheHint("evict_last"))
evict_unchanged: Final[RestEviction] = _made(RestEviction, CacheHint("evict_unchanged"))


def fractional(primary: Eviction, fraction: float, *, rest: RestEviction = evict_unchanged) -> CachePolicy:
    """`primary` for this fraction of the addresses (more than 0, at most 1), `rest` for the others."""
    first, other = (
        require(primary, Eviction, "`fractional`", "ox.cache.evict_last"),
        require(rest, RestEviction, "`rest`", "ox.cache.evict_first"),
    )
    value: object = fraction
    part = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    if not 0 < part <= 1:
        refuse(
            RecordError,
            "OX1161",
            "`fractional` gives its policy to a part of the addresses",
            got=described(fraction),
            required="a plain number above 0, at most 1",
            fix="ox.cache.fractional(ox.cache.evict_last, 0.5)",
        )
    made: CachePolicy = _made(CachePolicy, CacheHint(first._hint.primary, part, other._hint.primary))
    return made


def hint_of(policy: object) -> CacheHint | None:
    """The operand of an op."""
    return None if policy is None else require(policy, CachePolicy, "`cache_hint`", "cache_hint=ox.cache.evict_first")._hint
