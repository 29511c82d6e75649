"""Pages of the rules about cache hints, plain bulk copies, copies between CTAs and copies of four rows."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule
from oxidecopy.rules.simulator_scripts import explored
from oxidecopy.rules.verifier_scripts import BY_TEXT, Twins, scripts, twins

_BULK: Final = "PTX ISA 9.7.9.25.4, cp.async.bulk"


def _rule(number: str, error: str, title: str, why: str, source: str, shown: Twins | None = None) -> Rule:
    wrong, right = shown if shown is not None else ("", "")
    return Rule(id=number, title=title, error=error, why=why, source=source, wrong=wrong, right=right)


_HINTED: Final = """
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), token, cache_hint=<gap>)
    full.wait(token)
"""
_RUN: Final = """
    tile = cta.shared(ox.f32, (64,), align=ox.A16)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, 128)
        <gap>
    full.wait(token)
"""

_ROWS: Final = """
newer = ox.Device.open("sim", arch=100)
a = newer.array(np.arange(2048, dtype=np.float32).reshape(64, 32))

@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (4, 32), align=ox.A1024)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.gather4(leader, tile, (9, 3, 3, 0), 0, token)
    full.wait(token)

kernel[1](ox.TmaDescriptor.tiled(a, box=({rows}, 32)))
"""

RECORDER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX1160",
        "DTypeError",
        "A cache policy is one of `ox.cache`",
        "Its bits are the hardware's own: only the instruction that makes one knows them.",
        "PTX ISA 9.7.9.18, createpolicy",
        twins(_HINTED, "ox.CachePolicy()", "ox.cache.evict_first"),
    ),
    _rule(
        "OX1161",
        "RecordError",
        "A fractional policy is for a part of the addresses",
        "The fraction says how many of the addresses get the first policy; the others get the rest's.",
        "PTX ISA 9.7.9.18, createpolicy.fractional: more than 0, at most 1",
        twins(_HINTED, "ox.cache.fractional(ox.cache.evict_last, 1.5)", "ox.cache.fractional(ox.cache.evict_last, 0.5)"),
    ),
    _rule(
        "OX1162",
        "ShapeError",
        "Four rows are gathered through a map of one row",
        "gather4 and scatter4 take the map's box four times, at rows of their own.",
        "PTX ISA 5.5.3, tile::gather4: rank 2, one row per box",
        Twins(_ROWS.format(rows=2), _ROWS.format(rows=1)),
    ),
    _rule(
        "OX1164",
        "ShapeError",
        "An im2col load has one offset for each spatial dimension",
        "They say which tap of the filter is loaded. The hardware has 16 bits in one dimension, 8 each in two, 5 each in three. What is "
        "larger is cut, or spills into the next one.",
        "PTX ISA 5.5.4; measured",
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, src: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
                tile = cta.shared(src)
                full = cta.barrier().init(1)
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile)
                    src.g2s(leader, tile, (0, 0, 0, 0), token, offsets=<gap>)
                full.wait(token)

            a = dev.array(np.ones((2, 8, 8, 16), np.float32))
            kernel[1](ox.TmaDescriptor.im2col(a, lower=(0, 0), upper=(-2, -2), channels=16, pixels=32))
            """,
            "(256, 2)",
            "(2, 2)",
        ),
    ),
    _rule(
        "OX1163",
        "RecordError",
        "A plain bulk copy moves whole units of 16 bytes",
        "The hardware rounds the size down, for what is moved and for what the barrier is told: the rest never comes.",
        f"{_BULK}; measured: 24 bytes move 16",
        twins(
            _RUN, "ox.bulk_g2s(leader, tile, out, (0, 0), token, nbytes=120)", "ox.bulk_g2s(leader, tile, out, (0, 0), token, nbytes=128)"
        ),
    ),
)

_SENT: Final = """
    mine = cta.shared(ox.f32, (64,), align=ox.A128)
    theirs = cta.shared(ox.f32, (64,), align=ox.A128)
    full = cta.barrier().init(1)
    cta.fill(mine, 1.0)
    cta.fence_proxy_async()
    cta.cluster_sync()
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, theirs)
        ox.bulk_s2s(leader, mine, theirs, full, cta_rank=1 - cta.cta_rank)
        full.wait(token)
    <gap>
"""

_CONV: Final = """
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, src: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, cta.block_idx.x * 2, 0, 0), token, offsets=(<gap>))
    full.wait(token)

a = dev.array(np.ones((2, 8, 8, 16), np.float32))
"""
_STORED: Final = """
@ox.pipeline(threads=32)
def kernel(cta: ox.Cta, dst: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None:
    tile = cta.shared(dst)
    cta.fill(tile, 1.0)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, 0, 0, 0))
        leader.commit_group()
        leader.wait_group(0)

a = dev.array(np.ones((2, 8, 8, 16), np.float32))
kernel[1](ox.TmaDescriptor.im2col(a, lower=<gap>, upper=(0, 0), channels=16, pixels=32))
"""

VERIFIER_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX3055",
        "VerificationError",
        "A plain bulk copy moves whole units of 16 bytes",
        "The hardware rounds the size down, for what is moved and for what the barrier is told. "
        + BY_TEXT
        + "a recording refuses such sizes (OX1163).",
        f"{_BULK}; measured: 24 bytes move 16, 8 bytes move nothing",
    ),
    _rule(
        "OX3056",
        "VerificationError",
        "A plain bulk copy takes elements that follow each other",
        "It moves one run of bytes: along a dimension with gaps it would move what lies between the elements.",
        _BULK,
        scripts(
            """
            @ox.pipeline(threads=32)
            def kernel(cta: ox.Cta, src: ox.GlobalArray[ox.f32, ox.D2]) -> None:
                tile = cta.shared(ox.f32, (64,), align=ox.A16)
                full = cta.barrier().init(1)
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile)
                    ox.bulk_g2s(leader, tile, src, (0, 0), token)
                full.wait(token)

            a = dev.array(np.ones((128, 128), np.float32))
            strides = <gap>
            kernel[1](ox.GlobalArray(dtype=ox.f32, shape=(128, 128), strides_bytes=strides, buffer=a.buffer, device=dev))
            """,
            "(4, 512)",
            "(512, 4)",
        ),
    ),
    _rule(
        "OX3057",
        "VerificationError",
        "A plain bulk copy stays inside its array",
        "Without a map there are no bounds: nothing is clipped or filled, what lies behind the array is read, or overwritten.",
        _BULK,
        twins(
            _RUN,
            "ox.bulk_g2s(leader, tile, out, (127, 112), token, nbytes=128)",
            "ox.bulk_g2s(leader, tile, out, (127, 96), token, nbytes=128)",
        ),
    ),
    _rule(
        "OX3058",
        "VerificationError",
        "A CTA lives until its copies to others have been read",
        "A copy between CTAs tells the receiver's barrier only. A sender that exits early takes the memory away that is still being read.",
        "CUDA Programming Guide, distributed shared memory",
        twins(_SENT, "", "cta.cluster_sync()", cluster=True),
    ),
    _rule(
        "OX3059",
        "VerificationError",
        "Four rows are copied through a map of one row",
        "gather4 and scatter4 take the map's box four times. " + BY_TEXT + "a recording refuses other boxes (OX1162).",
        "PTX ISA 5.5.3, tile::gather4",
    ),
    _rule(
        "OX3095",
        "VerificationError",
        "An im2col copy starts at a filter base",
        "Its walk begins there; the hardware faults on a start outside the box between the map's corners.",
        "PTX ISA 5.5.4; measured: fault 715",
        scripts(
            _CONV.replace("<gap>", "0, 0")
            + "kernel[<gap>](ox.TmaDescriptor.im2col(a, lower=(0, 0), upper=(-2, -2), channels=16, pixels=32))",
            "4",
            "3",
        ),
    ),
    _rule(
        "OX3096",
        "VerificationError",
        "An im2col store stays inside the tensor",
        "A map whose box of bases reaches into the padding is for loads only: every store through it faults.",
        "PTX ISA 9.7.9.27, tensor restrictions; measured: fault 715",
        scripts(_STORED, "(-1, 0)", "(0, 0)"),
    ),
    _rule(
        "OX3097",
        "VerificationError",
        "An im2col offset has as many bits as the hardware looks at",
        "More are not diagnosed: they are cut, or spill into the next dimension's.",
        "PTX ISA 5.5.4.2; measured",
        scripts(
            _CONV + "kernel[1](ox.TmaDescriptor.im2col(a, lower=(0, 0), upper=(-2, -2), channels=16, pixels=32))",
            "cta.grid_dim.x * 256, 0",
            "cta.grid_dim.x, 0",
        ),
    ),
)

SIMULATOR_RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "OX4119",
        "HazardError",
        "A CTA lives until its copies to others have been read",
        "A copy between CTAs tells the receiver's barrier only: the sender needs word from there before it exits.",
        "CUDA Programming Guide, distributed shared memory",
        explored(_SENT, "", "cta.cluster_sync()", cluster=True),
    ),
)
