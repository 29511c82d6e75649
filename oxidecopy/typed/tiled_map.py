"""What the user passed to a factory of descriptors -> `TensorMap`, or one error with every broken rule.

This module turns Python values into the driver's parameters, and refuses what is no such value; all other rules are `oxidecopy.maps`'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.errors import DescriptorError, Diagnostic, OxidecopyError
from oxidecopy.isa import limits
from oxidecopy.isa.im2col import WIDE_PIXELS
from oxidecopy.maps.enumerators import FILLS, INTERLEAVES, PROMOTIONS, WIDE_MODES
from oxidecopy.maps.facts import up
from oxidecopy.maps.parameters import Kind, MapParameters
from oxidecopy.maps.validate import errors_of
from oxidecopy.program.tensor_map import IM2COL, IM2COL_WIDE, SLICE_BYTES, TILE, TensorMap
from oxidecopy.typed.refusal import whole
from oxidecopy.typed.sites import caller_site

if TYPE_CHECKING:
    from oxidecopy.isa.dtypes import DTypeInfo
    from oxidecopy.isa.swizzle import SwizzleInfo

_TUPLE: Final = "one Python int per dimension, outermost first"


@final
class Source(NamedTuple):
    """The array that a map is made over, all tuples outermost dimension first.

    Attributes:
        dtype: its element type.
        shape: its extents, elements.
        strides_bytes: bytes from one index to the next, one entry per dimension.
        address: of its first element.
        interleave: "none", or how wide the pixels are that the innermost dimension counts: "16B" or "32B".
    """

    dtype: DTypeInfo
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    address: int
    interleave: str = "none"

    @property
    def unit_bytes(self) -> int:
        """From one index of the innermost dimension to the next."""
        return SLICE_BYTES[self.interleave] or -(-self.dtype.bits // 8)

    def __str__(self) -> str:
        return f"the {self.dtype.name} array of shape {self.shape}"


@final
class Choices(NamedTuple):
    """What every factory takes beside the array; not checked yet.

    Attributes:
        element_strides: step of each dimension, elements; None for 1 everywhere.
        swizzle: the mode.
        l2_promotion: bytes, a key of `PROMOTIONS`.
        oob_fill: a key of `FILLS`.
        sm: compute capability the map is for, 90 for 9.0.
    """

    swizzle: SwizzleInfo
    sm: int
    element_strides: object = None
    l2_promotion: object = 128
    oob_fill: object = "zero"


def build_tensor_map(of: Source, choices: Choices, box: object) -> TensorMap:
    """The tiled map over an array that copies boxes of `box` elements.

    Raises:
        DescriptorError: with every broken rule.
    """
    front = _Front(of, choices)
    extents = front.numbers("OX2011", "box", box)
    parameters = front.parameters("tiled")
    if extents:
        front.whole_spans(extents)
    return front.made(replace(parameters, box_dim=extents or ()), TILE, () if extents is None else ("OX2012",))


def build_im2col_map(  # as many as the driver's call has
    of: Source, choices: Choices, *, mode: str, lower: object, upper: object, channels: object, pixels: object
) -> TensorMap:
    """The im2col map over an array that copies `channels` elements of each of `pixels` pixels; `mode` as in `TensorMap`.

    Raises:
        DescriptorError: with every broken rule.
    """
    front = _Front(of, choices)
    corners = {name: front.numbers("OX2026", name, value) for name, value in (("lower", lower), ("upper", upper))}
    counts = {name: front.number(name, value) for name, value in (("channels", channels), ("pixels", pixels))}
    parameters = replace(
        front.parameters("im2col" if mode == IM2COL else "im2col_wide"),
        wide_mode=WIDE_MODES.get(mode, 0),
        lower=corners["lower"] or (),
        upper=corners["upper"] or (),
        channels=counts["channels"] or 0,
        pixels=counts["pixels"] or 0,
    )
    known = [rule for name, rule in (("channels", "OX2048"), ("pixels", "OX2049")) if counts[name] is not None]
    return front.made(parameters, mode, (*known, *(() if None in corners.values() else ("OX2044",))))


@final
class _Front:
    """Collects what is refused before there are parameters at all."""

    def __init__(self, of: Source, choices: Choices) -> None:
        self._of = of
        self._choices = choices
        self._found: list[Diagnostic] = []
        self._strides = of.strides_bytes
        self._steps: tuple[int, ...] | None = tuple(1 for _ in of.shape)
        if choices.element_strides is not None:
            self._steps = self.numbers("OX2016", "element_strides", choices.element_strides)

    def _add(self, rule: str, what: str, *, got: str, required: str, fix: str) -> None:
        # Only a refusal needs the pages: the accepting path stays fast.
        from oxidecopy.rules.descriptor import SOURCES

        self._found.append(Diagnostic(rule=rule, what=what, got=got, required=f"{required} ({SOURCES[rule]})", fix=fix))

    def numbers(self, rule: str, name: str, value: object) -> tuple[int, ...] | None:
        """A tuple of integers; None, with a fault, when it is something else."""
        if not isinstance(value, tuple):
            typed = ", or a type such as ox.Box2[Literal[64], Literal[64]]" if name == "box" else ""
            fix = f"{name}={self._meant(name, value)}{typed}"
            self._add(rule, f"`{name}` is no tuple of integers", got=f"{value!r} ({type(value).__name__})", required=_TUPLE, fix=fix)
            return None
        numbers = [_integer(entry) for entry in value]
        wrong = [f"entry {i} is {entry!r} ({type(entry).__name__})" for i, entry in enumerate(value) if numbers[i] is None]
        if wrong:
            fix = "pass whole numbers known on the host; `//` keeps a quotient one"
            self._add(rule, f"`{name}` must hold integers", got=", ".join(wrong), required=_TUPLE, fix=fix)
            return None
        return tuple(n for n in numbers if n is not None)

    def _meant(self, name: str, value: object) -> tuple[int, ...]:
        """A tuple of the right length, as near to `value` as can be."""
        rank = len(self._of.shape)
        count = rank - 2 if name in ("lower", "upper") else rank
        one = _integer(value)
        if one is not None:
            return (*(one for _ in range(count - 1)), 1 if name == "element_strides" else one)
        entries = [_integer(entry) for entry in value] if isinstance(value, Iterable) and not isinstance(value, str) else []
        known = tuple(n for n in entries if n is not None)
        usual = {"box": 64, "element_strides": 1}.get(name, 0)
        return known if len(known) == len(entries) == count else (usual,) * count

    def number(self, name: str, value: object) -> int | None:
        """An integer; None, with a fault, when it is something else."""
        found = _integer(value)
        if found is None:
            got, fix = f"{value!r} ({type(value).__name__})", "pass a whole number known on the host"
            self._add("OX2027", f"`{name}` is no integer", got=got, required="a Python int", fix=fix)
        return found

    def parameters(self, kind: Kind) -> MapParameters:
        """Those that all kinds of map share."""
        of, choices = self._of, self._choices
        self._dense()
        unit = 32 if of.interleave == "32B" else limits.GLOBAL_STRIDE_ALIGN
        return MapParameters(
            kind=kind,
            dtype=of.dtype.driver_enum,
            global_address=of.address,
            global_dim=of.shape,
            global_strides=_meaningful(of._replace(strides_bytes=self._strides), unit)[:-1],
            element_strides=self._steps or (),
            interleave=INTERLEAVES[of.interleave],
            swizzle=choices.swizzle.driver_enum,
            l2_promotion=self._promotion(),
            oob_fill=self._fill(),
            element=of.dtype.name,
        )

    def made(self, parameters: MapParameters, mode: str, lengths: tuple[str, ...]) -> TensorMap:
        """The map, when all rules hold; `lengths` are rules that only mean something for values that could be read at all."""
        readable = {*lengths, *(("OX2017",) if self._steps is not None else ())}
        blind = {"OX2012", "OX2017", "OX2044", "OX2048", "OX2049"} - readable
        found = [*self._found, *(d for d in errors_of(parameters, self._choices.sm) if d.rule not in blind)]
        if found:
            site = caller_site()
            raise DescriptorError(*(self._said(replace(d, site=site)) for d in sorted(found, key=lambda d: d.rule)))
        return TensorMap(
            dtype=self._of.dtype.name,
            global_dim=parameters.global_dim or (),
            global_strides=parameters.global_strides or (),
            box_dim=(parameters.box_dim or ()) if mode == TILE else (_pixels(parameters.pixels, mode), parameters.channels),
            element_strides=parameters.element_strides or (),
            interleave=self._of.interleave,
            swizzle=self._choices.swizzle.name,
            l2_promotion=list(PROMOTIONS)[parameters.l2_promotion],
            oob_fill=list(FILLS)[parameters.oob_fill],
            mode=mode,
            lower=parameters.lower or (),
            upper=parameters.upper or (),
        )

    def _said(self, d: Diagnostic) -> Diagnostic:
        """Rows are those of the array before it was turned, not what lies innermost now."""
        turned = d.rule == "OX2006" and self._strides != self._of.strides_bytes
        return replace(d, fix="pad the rows before the array is turned: dev.array(x, pad=True)") if turned else d

    def _dense(self) -> None:
        """The innermost dimension has no stride in a map: its elements must follow each other.

        Where they do not, the other strides are judged as the fix leaves them: another dimension innermost, or a dense copy.
        """
        of = self._of
        size = of.unit_bytes
        if of.dtype.bits % 8 or not of.shape or of.shape[-1] <= 1 or of.strides_bytes[-1] == size:
            return
        other = [axis for axis, stride in enumerate(of.strides_bytes) if stride == size and of.shape[axis] > 1]
        swapped = [of.strides_bytes[-1] if axis in other[:1] else stride for axis, stride in enumerate(of.strides_bytes)]
        self._strides = tuple(swapped) if other else tuple(up(stride, limits.GLOBAL_STRIDE_ALIGN) for stride in of.strides_bytes)
        swap = f"dimension {other[0]} is the dense one: transpose the array so that it comes last, and the box with it" if other else ""
        self._add(
            "OX2005",
            f"the innermost dimension of {of} is not contiguous",
            got=f"{of.strides_bytes[-1]} bytes from one element to the next",
            required=f"{size} bytes, the size of one {of.dtype.name if of.interleave == 'none' else 'slice pixel'}",
            fix=swap or "upload a copy: dev.array(np.ascontiguousarray(x), pad=True)",
        )

    def whole_spans(self, box: tuple[int, ...]) -> None:
        """Rows of slice pixels are dense, of other tiles a span apart: here they are both."""
        span, step = self._choices.swizzle.span_bytes, (self._steps or (1,))[-1]
        row = -(-box[-1] // max(step, 1)) * self._of.unit_bytes
        if self._of.interleave != "none" and span and row % span:
            fit = span // self._of.unit_bytes * max(step, 1)
            self._add(
                "OX2029",
                f"rows of an interleaved tile end inside a span of the {self._choices.swizzle.name} swizzle",
                got=f"{row} bytes = {row // span} x {span} + {row % span}",
                required=f"a multiple of {span} bytes",
                fix=f"box inner a multiple of {fit}, or swizzle=ox.SwizzleNone",
            )

    def _promotion(self) -> int:
        value = self._choices.l2_promotion
        if type(value) is int and value in PROMOTIONS:
            return PROMOTIONS[value]
        self._add("OX2023", "`l2_promotion` is unknown", got=repr(value), required="0, 64, 128 or 256 bytes", fix="l2_promotion=128")
        return 0

    def _fill(self) -> int:
        value = self._choices.oob_fill
        if isinstance(value, str) and value in FILLS:
            return FILLS[value]
        self._add("OX2020", "`oob_fill` is unknown", got=repr(value), required='"zero" or "nan"', fix='oob_fill="zero"')
        return 0


def _integer(value: object) -> int | None:
    """`value` as an int when it is one (numpy's too, bool is not); symbolic integers are none here."""
    try:
        return whole(value)
    except OxidecopyError:
        return None


def _pixels(asked: int, mode: str) -> int:
    """Of one copy: in mode im2col::w::128 it is 128, whatever is asked for."""
    return WIDE_PIXELS if mode == IM2COL_WIDE[1] else asked


def _meaningful(of: Source, unit: int) -> tuple[int, ...]:
    """Strides with those of size-1 dimensions replaced: the hardware never steps along them, but the driver checks them (measured)."""
    strides: list[int] = []
    dense = of.unit_bytes
    for extent, stride in zip(reversed(of.shape), reversed(of.strides_bytes), strict=True):
        strides.append(-(-dense // unit) * unit if extent == 1 else stride)
        dense = strides[-1] * extent if strides[-1] * extent < limits.GLOBAL_STRIDE_LIMIT else unit
    return tuple(reversed(strides))
