"""Scripts of rules that warn and stop nothing. Each leaves what it was told in `warnings`; right leaves nothing of the rule there."""

from __future__ import annotations

from textwrap import dedent
from typing import Final

from oxidecopy.rules.recorder_contract import script
from oxidecopy.rules.verifier_scripts import Twins, scripts

_PROVEN: Final = "warnings = launch.verify().warnings\n"
_SEEN: Final = """\
from oxidecopy.engines.sim import explore

warnings = explore(launch.program, launch.bindings).notes
"""
_ROLE: Final = """
    @ox.pipeline(threads=64)
    def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1], n: ox.Idx) -> None:
        with cta.warps(1, 2):
            for i in cta.range(n):
                cta.fence_proxy_async()


    launch = kernel[1].bind(dev.empty((64,), ox.f32), <gap>)
"""
_HOLE: Final = """
    @ox.pipeline(threads=64)
    def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A128)
        cta.fill(tile, 1.0)
        cta.sync()
        cta.store(out, tile, (cta.block_idx.x * 64,))


    launch = kernel[<gap>].bind(dev.empty((128,), ox.f32))
"""
_PRODUCT: Final = script(
    line="group.contract(ring, outs, at, steps=1, epilogue=lambda s, v: s + v, reads=(ox.per_column(bias),))",
    bias="dev.zeros((<gap>,), ox.f32)",
)


def _warned(script: str, wrong: str, right: str, *, told: str = _PROVEN) -> Twins:
    return scripts(dedent(script).strip("\n") + "\n" + told, wrong, right)


WARNED: Final[dict[str, Twins]] = {
    "OX3101": _warned(
        """
        @ox.pipeline(threads=128)
        def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, (cta.block_idx.y<gap>, 0), token)
            full.wait(token)


        a = dev.array(np.ones((256, 64), np.float32))
        launch = kernel[1, 4].bind(ox.TmaDescriptor.tiled(a, box=(64, 64)))
        """,
        "",
        " * 64",
    ),
    "OX3102": _warned(_ROLE, "0", "1"),
    "OX3103": _warned(
        """
        @ox.pipeline(threads=128)
        def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
            tile = cta.shared(dst)
            cta.fill(tile, 0.0)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                dst.s2g(leader, tile, (0, cta.block_idx.x * 64))
                leader.commit_group()
                leader.wait_group(0)


        theirs = dev.borrow(np.zeros((64, 160), np.float32)[:, :<gap>], ox.f32)
        launch = kernel[2].bind(ox.TmaDescriptor.tiled(theirs, box=(64, 64)))
        """,
        "126",
        "124",
    ),
    "OX3104": _warned(
        """
        @ox.pipeline(threads=128)
        def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
            tile = cta.shared(dst)
            cta.fill(tile, 0.0)
            cta.fence_proxy_async()
            cta.sync()
            with cta.thread(0) as leader:
                dst.s2g(leader, tile, (0, 0))
                leader.commit_group()
                leader.wait_group(0)
            with cta.thread(<gap>) as leader:
                leader.wait_group_read(0)


        launch = kernel[1].bind(ox.TmaDescriptor.tiled(dev.zeros((64, 64), ox.f32), box=(64, 64)))
        """,
        "1",
        "0",
    ),
    "OX3105": _warned(
        """
        @ox.pipeline(threads=32, cluster=(<gap>, 1))
        def kernel(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
            cta.cluster_sync()


        launch = kernel[16].bind(dev.empty((64,), ox.f32))
        """,
        "16",
        "8",
    ),
    "OX3106": _warned(_HOLE, "1", "2"),
    "OX3107": _warned(
        """
        @ox.pipeline(threads=64)
        def kernel(cta: ox.Cta, rows: ox.GlobalArray[ox.i32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
            tile = cta.shared(ox.f32, (1, 64), align=ox.A128)
            row = cta.load_index(rows, cta.block_idx.x, below=out.shape[0])
            cta.fill(tile, 1.0)
            cta.sync()
            cta.store(out, tile, (<gap>, 0))


        launch = kernel[8].bind(dev.array(np.arange(8, dtype=np.int32)), dev.zeros((8, 64), ox.f32))
        """,
        "row",
        "cta.block_idx.x",
    ),
    "OX3108": _warned(
        """
        @ox.pipeline(threads=64)
        def kernel(
            cta: ox.Cta,
            src: ox.TmaDescriptor[ox.f32, ox.D2],
            x: ox.GlobalArray[ox.f32, ox.D2],
            ends: ox.GlobalArray[ox.i32, ox.D1],
            slots: ox.GlobalArray[ox.u8, ox.D2],
        ) -> None:
            slot = cta.tensormap(src, slots)
            tile = cta.shared(src)
            full = cta.barrier().init(1)
            with cta.warps(0, 1) as warp:
                with warp.elect() as leader:
                    end = cta.load_index(ends, 0, below=x.shape[0] + 1)
                    draft = slot.edit(leader)
                    draft.replace(leader, x, (0, 0), (<gap>, 32))
                released = draft.cp_fenceproxy(warp)
                with warp.elect() as leader:
                    desc = released.acquire(leader)
                    token = full.arrive_expect_tx(leader, tile)
                    desc.g2s(leader, tile, (0, 0), token)
                    full.wait(token)


        a, ends = dev.array(np.ones((64, 32), np.float32)), dev.array(np.full(8, 5, np.int32))
        launch = kernel[1].bind(ox.TmaDescriptor.tiled(a, box=(8, 32)), a, ends, dev.empty((1, 128), ox.u8))
        """,
        "end",
        "5",
    ),
    "OX4132": _warned(_HOLE, "1", "2", told=_SEEN),
    "OX4133": _warned(_ROLE, "0", "1", told=_SEEN),
    "OX3109": _warned(_PRODUCT.replace("matmul[1](", "launch = matmul[1].bind("), "32", "64"),
}
