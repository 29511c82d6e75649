"""What `Cta` asks of plain arguments: boxes, alignments, element types, numbers of stages and warps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oxidecopy.errors import DTypeError, RecordError, ScopeError, ShapeError
from oxidecopy.isa import limits
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import A16, box_extents
from oxidecopy.typed.refusal import described, refuse, whole
from oxidecopy.typed.states import Kind
from oxidecopy.typed.symbolic import constant

if TYPE_CHECKING:
    from oxidecopy.typed.recorder import Recorder

_STAGES_MAX = 1024  # of one array: 8 KiB of barriers, more than a ring of the smallest tiles can use


def stages_of(n: object, what: str) -> int:
    """The number of elements of an array of tiles or barriers."""
    stages = whole(n)
    if stages is None or not 1 <= stages <= _STAGES_MAX:
        refuse(
            RecordError,
            "OX1048",
            f"the number of {what} is a constant of the pipeline",
            got=described(n),
            required=f"a plain int from 1 to {_STAGES_MAX}",
            fix="use an int, or an `int` parameter of the pipeline",
        )
    return stages


def element_type(dtype: object) -> str:
    """The name of an element type."""
    if not (isinstance(dtype, type) and issubclass(dtype, DType) and "info" in dtype.__dict__):
        refuse(
            DTypeError,
            "OX1056",
            "a shared tile is made of a descriptor or an element type",
            got=described(dtype),
            required="a parameter of type TmaDescriptor, or a class such as ox.f32",
            fix="cta.shared(ox.f32, (64, 64), align=ox.A128)",
        )
    return dtype.info.name


def box_of(box: object) -> tuple[int, ...]:
    """The extents of a box, given as a tuple or as a type."""
    shape = box_extents(box) or box
    extents = tuple(whole(n) for n in shape) if isinstance(shape, tuple) else ()
    known = tuple(n for n in extents if n is not None and n > 0)
    if not 1 <= len(known) == len(extents) <= limits.MAX_RANK:
        refuse(
            ShapeError,
            "OX1057",
            "this is no box",
            got=described(box),
            required=f"1 to {limits.MAX_RANK} positive ints, outermost first, in elements",
            fix="write (64, 64), or ox.Box2[Literal[64], Literal[64]]",
        )
    return known


def alignment(align: object) -> int:
    """The bytes of an alignment."""
    if not (isinstance(align, type) and issubclass(align, A16)):
        required = "ox.A16, ox.A128, ox.A256, ox.A512 or ox.A1024"
        refuse(DTypeError, "OX1047", "`align` is no alignment", got=described(align), required=required, fix="align=ox.A1024")
    return align.bytes


def barrier_kind(kind: object) -> type[Kind]:
    """A barrier kind."""
    if not (isinstance(kind, type) and issubclass(kind, Kind) and kind is not Kind):
        required = "ox.TmaBarrier, ox.MmaBarrier or ox.GeneralBarrier"
        refuse(
            DTypeError, "OX1047", "`kind` is no barrier kind", got=described(kind), required=required, fix="leave it out for a TmaBarrier"
        )
    return kind


def brand_name(brand: object) -> str:
    """The name that barriers of a brand have in errors and listings."""
    if not isinstance(brand, type):
        fix = "class Full: ...  # then brand=Full"
        refuse(DTypeError, "OX1047", "`brand` is no class", got=described(brand), required="a class of yours", fix=fix)
    return brand.__name__.lower()


def plain_name(name: object, what: str) -> str:
    """A name of the user's for `what`."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name):
        required = "a word of letters, digits and _"
        refuse(RecordError, "OX1009", f"the name of {what} is a word", got=described(name), required=required, fix='name="scores"')
    return name


def warp_threads(recorder: Recorder, first: object, stop: object) -> ThreadSet:
    """The threads of warps `first` to `stop` - 1; the last one may be partial."""
    warps = -(-recorder.threads // limits.WARP)
    low, high = whole(first), whole(stop)
    if low is None or high is None or not 0 <= low < high <= warps:
        refuse(
            ScopeError,
            "OX1043",
            "`warps` names warps that the CTA does not have",
            got=f"{described(first)} to {described(stop)}",
            required=f"plain ints, 0 <= first < stop <= {warps}",
            fix=f"cta.warps(0, {warps}) is all of them",
        )
    return ThreadSet(((low * limits.WARP, min(high * limits.WARP, recorder.threads)),))


def loop_step(step: object) -> int:
    """The step of a recorded loop."""
    number = constant(step)
    if not number or not -(1 << 31) <= number < 1 << 31:
        refuse(
            RecordError,
            "OX1063",
            "a loop's step is a constant",
            got=described(step),
            required="a plain int other than 0, of at most 32 bits",
            fix="count by ones and multiply the counter",
        )
    return number
