"""Pages of the rules about descriptors that the device replaces; a wrong script is the right one but for a line."""

from __future__ import annotations

from textwrap import indent
from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.verifier_scripts import BY_TEXT, Twins

_GUIDE: Final = "CUDA Programming Guide, usage of a modified tensor map; PTX ISA 9.7.13.16"
_REPLACE: Final = "PTX ISA 9.7.9.28, tensormap.replace"
_HEAD: Final = """\
@ox.pipeline(threads=64)
def kernel(
    cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], x: ox.GlobalArray[ox.f32, ox.D2], slots: ox.GlobalArray[ox.u8, ox.D2], n: ox.Idx
) -> None:
"""
_ARGUMENTS: Final = """

a = dev.array(np.ones((64, 32), np.float32))
b = dev.array(np.ones((64, 36), np.float32))
arguments = ox.TmaDescriptor.tiled(a, box=(8, 32)), b, dev.empty((2, 128), ox.u8), 4
"""
_LAUNCHED: Final = "kernel[2](*arguments)\n"
_EXPLORED: Final = """\
from oxidecopy.engines.sim import explore

launch = kernel[2].bind(*arguments)
explore(launch.program, launch.bindings).check()
"""
_EDITED: Final = """\
slot = cta.tensormap(src, slots)
tile = cta.shared(src)
full = cta.barrier().init(1)
with cta.warps(0, 1) as warp:
    for i in cta.range(n):
        with warp.elect() as leader:
            draft = slot.edit(leader)
            draft.replace(leader, x, (i * 8, 0), (i * 8 + 5, 32))
        released = draft.cp_fenceproxy(warp)
"""
_ONE: Final = (
    _EDITED
    + """\
        with warp.elect() as leader:
            desc = released.acquire(leader)
            ox.bulk_prefetch(leader, x, (0, 0), nbytes=128)
            token = full.arrive_expect_tx(leader, tile)
            desc.g2s(leader, tile, (0, 0), token)
            full.wait(token)
"""
)
_SHORT: Final = """\
slot = cta.tensormap(src, slots)
with cta.warps(0, 1) as warp:
    with warp.elect() as leader:
        draft = slot.edit(leader)
        draft.replace(leader, x, (0, 0), (5, 32))
    released = draft.cp_fenceproxy(warp)
    with warp.elect() as leader:
        desc = released.acquire(leader)
        desc.prefetch(leader, (0, 0))
"""
_STORED: Final = (
    _EDITED.replace("(i * 8, 0), (i * 8 + 5, 32)", "(at, 0), (at + 5, 32)").replace(
        "        with warp.elect() as leader:\n", "        at = (cta.block_idx.x * n + i) * 8\n        with warp.elect() as leader:\n"
    )
    + """\
        with warp.elect() as leader:
            desc = released.acquire(leader)
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0), token)
            full.wait(token)
            desc.s2g(leader, tile, (0, 0))
            leader.commit_group()
            leader.wait_group_read(0)
"""
)
_OTHER: Final = (
    _EDITED
    + """\
        with warp.elect() as leader:
            desc = released.acquire(leader)
        warp.sync()
        with cta.thread(1) as other:
            token = full.arrive_expect_tx(other, tile)
            desc.g2s(other, tile, (0, 0), token)
        full.wait_phase(i)
"""
)


def _twins(old: str, new: str, *, body: str = _ONE, explored: bool = False) -> Twins:
    """The pipeline, and with `old` replaced by `new`, in the launch as well."""
    rest = _ARGUMENTS + (_EXPLORED if explored else _LAUNCHED)
    wrong = _HEAD + indent(body.replace(old, new), "    ") + rest.replace(old, new)
    return Twins(wrong, _HEAD + indent(body, "    ") + rest)


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=wrong, right=right)


RECORDER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1170",
        "MovedError",
        "A draft ends with its release, or with the next edit of its slot",
        "There is one place in shared memory for a slot: what is copied there anew is another descriptor.",
        _GUIDE,
        _twins("        draft.replace", "        slot.edit(leader)\n        draft.replace", body=_SHORT),
    ),
    _rule(
        "OX1171",
        "RecordError",
        "A slot is for a tiled descriptor, and lies in an array of bytes",
        "tensormap.replace has a form for tiled maps only, and this library knows what it writes where there is no interleave; a place is "
        "128 bytes of global memory.",
        _REPLACE,
        _twins("cta.tensormap(src, slots)", "cta.tensormap(src, x)", body=_SHORT),
    ),
    _rule(
        "OX1172",
        "ScopeError",
        "A whole warp releases a descriptor",
        "tensormap.cp_fenceproxy is .sync.aligned: all 32 threads of a warp execute it together.",
        "PTX ISA 9.7.13.16, tensormap.cp_fenceproxy",
        _twins("cta.warps(0, 1)", "cta.warps(0, 2)", body=_SHORT),
    ),
    _rule(
        "OX1173",
        "DTypeError",
        "A descriptor is pointed at an array of its rank",
        "Rank, box and element type are what its copies were recorded for; address, extents and strides are what is replaced.",
        _REPLACE,
        Twins(
            *(
                (_HEAD + indent(_SHORT, "    ") + _ARGUMENTS + _LAUNCHED)
                .replace("x: ox.GlobalArray[ox.f32, ox.D2]", f"x: ox.GlobalArray[ox.f32, ox.D{rank}]")
                .replace("(64, 36)", shape)
                for rank, shape in ((1, "(64,)"), (2, "(64, 36)"))
            )
        ),
    ),
    _rule(
        "OX1174",
        "MovedError",
        "A descriptor ends when its slot is released anew",
        "The slot then holds another one, which each CTA must acquire: until then its copies may go through either.",
        _GUIDE,
        _twins(
            "        desc.prefetch",
            "        draft = slot.edit(leader)\n    draft.cp_fenceproxy(warp)\n    with warp.elect() as leader:\n        desc.prefetch",
            body=_SHORT,
        ),
    ),
)

VERIFIER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3210",
        "VerificationError",
        "One thread edits a descriptor, one warp releases it",
        "Each tensormap.replace writes all 128 bytes, so that edits of several threads race; tensormap.cp_fenceproxy is one instruction of "
        "a whole warp. " + BY_TEXT + "what the recorder makes is so (OX1014, OX1172).",
        _REPLACE,
    ),
    _rule(
        "OX3211",
        "VerificationError",
        "Descriptors lie where the hardware looks for them, each CTA's in rows of its own",
        "A map is 128 bytes at a multiple of 128. CTA k owns the rows from k times its slots on: with fewer rows some would lie in memory "
        "that is somebody else's.",
        "PTX ISA 9.7.9.28 and 9.7.13.16: .b1024 objects; CUDA Programming Guide, examples of encoding on the device",
        _twins("dev.empty((2, 128), ox.u8)", "dev.empty((1, 128), ox.u8)"),
    ),
    _rule(
        "OX3212",
        "VerificationError",
        "A window lies inside its array",
        "The hardware checks no address that it is given: a window that goes on behind the array is clipped at its own end, not at the "
        "array's.",
        "the rules of tiled maps (OX2002, OX2003): a start at a multiple of 16 bytes; no extents beyond the memory",
        _twins("(i * 8 + 5, 32)", "(i * 8 + 50, 32)"),
    ),
    _rule(
        "OX3213",
        "VerificationError",
        "A copy goes through a replaced descriptor only behind release and acquire",
        "A multiprocessor keeps descriptors that it has used. After a write without an acquire, copies went on through the old one for as "
        "long as was tried, in every block (measured on an H200).",
        _GUIDE,
        _twins("        warp.sync()\n", "", body=_OTHER),
    ),
    _rule(
        "OX3214",
        "VerificationError",
        "A descriptor is replaced when no copy may still read it",
        "A copy reads its descriptor some time after it was issued. A load is over with its phase, a store when `wait_group_read` says so; "
        "of a prefetch nothing tells, so a slot that one went through is never replaced again.",
        "PTX ISA, cp.async.bulk.wait_group: `.read` waits for the reading of the tensor map, too",
        _twins("            full.wait(token)\n", ""),
    ),
    _rule(
        "OX3215",
        "VerificationError",
        "A replaced descriptor is of the kind that its copies were recorded for",
        "Box, swizzle, element type and the like are part of every proof. What it is pointed at must fit a tiled map: dense along its last "
        "dimension, other strides multiples of 16 bytes.",
        "the rules of tiled maps; cuTensorMapEncodeTiled",
        _twins("np.ones((64, 36), np.float32)", "np.ones((64, 33), np.float32)"),
    ),
    _rule(
        "OX3216",
        "VerificationError",
        "Memory for descriptors is for nothing else",
        "What else is stored there would be taken for a descriptor, and what else reads it would find one.",
        "our own rule: the proof follows descriptors by their places",
        _twins("ox.bulk_prefetch(leader, x, (0, 0), nbytes=128)", "ox.bulk_prefetch(leader, slots, (0, 0), nbytes=128)"),
    ),
)

SIMULATOR_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX4017",
        "DeviceFaultError",
        "A window has an element",
        "A map stores extents less one, so that none has extent 0: the hardware would take it for 2^32. The launch ends with an error "
        "instead.",
        "measured on an H200: tensormap.replace of extent 0 stores 0xffffffff",
        _twins("(i * 8 + 5, 32)", "(i * 8, 32)", explored=True),
    ),
    _rule(
        "OX4120",
        "HazardError",
        "A copy goes through a descriptor that this CTA has acquired",
        "Until then it goes through what the CTA knows to be there: the one before, if it used that place before. See OX3213. "
        + BY_TEXT
        + "types ask for it. Where a sync is missing, schedules differ: a place that was never written is a fault instead.",
        _GUIDE,
    ),
    _rule(
        "OX4121",
        "HazardError",
        "A descriptor in use is not written",
        "The copy may read half of each. See OX3214.",
        _GUIDE,
        _twins("            leader.wait_group_read(0)\n", "", body=_STORED, explored=True),
    ),
    _rule(
        "OX4122",
        "HazardError",
        "One thread edits a descriptor, one warp releases it",
        "See OX3210. " + BY_TEXT + "what the recorder makes is so.",
        _REPLACE,
    ),
)
