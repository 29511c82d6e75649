"""Scripts of rules that a type checker reports: wrong gets the plugin's code, right does not. They are checked, never run."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.verifier_scripts import Twins, scripts

_LOAD: Final = """
    import oxidecopy as ox


    def load(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
        tile = cta.shared(ox.f32, (32, 32), align=ox.A1024)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, {nbytes})
        {indent}src.g2s(leader, tile, (0, 0), token)
        full.wait(token)
"""

TYPED: Final[dict[str, Twins]] = {
    "OX7001": scripts(
        """
        import oxidecopy as ox


        def make(cta: ox.Cta) -> None:
            bar = cta.barrier()
            full = bar.init(1)
            <gap>.inval()
        """.replace("<gap>.inval()", "<gap>"),
        "bar.init(1)",
        "full.inval()",
    ),
    "OX7002": scripts(
        """
        import oxidecopy as ox

        Full = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]


        def stop(full: <gap>) -> None:
            full.inval()
        """,
        "Full",
        "ox.Owned[Full]",
    ),
    "OX7003": scripts(
        """
        import oxidecopy as ox


        def wait(cta: ox.Cta) -> None:
            a, b = cta.barrier().init(1), cta.barrier().init(1)
            token = b.arrive()
            <gap>.wait(token)
        """,
        "a",
        "b",
    ),
    "OX7004": scripts(_LOAD.format(nbytes="tile", indent="<gap>"), "", "    "),
    "OX7005": scripts(
        """
        import oxidecopy as ox


        def first(cta: ox.Cta, tile: ox.SharedArray[ox.f32]) -> None:
            <gap>:
                cta.fill(tile, 0.0)
        """,
        "if cta.block_idx.x == 0",
        "with cta.when(cta.block_idx.x == 0)",
    ),
    "OX7006": scripts(_LOAD.format(nbytes="<gap>", indent="    "), "2048", "4096"),
    "OX7007": scripts(
        """
        import oxidecopy as ox


        def describe(a: ox.GlobalArray[ox.f32, ox.D2]) -> ox.TmaDescriptor[ox.f32, ox.D2]:
            return ox.TmaDescriptor.tiled(a, box=(64, <gap>))
        """,
        "3",
        "4",
    ),
    "OX7008": scripts(
        """
        import oxidecopy as ox


        def stages(cta: ox.Cta) -> None:
            a = cta.shared(ox.f32, (256, 128), align=ox.A1024)
            b = cta.shared(ox.f32, (<gap>, 128), align=ox.A1024)
            cta.fill(a, 0.0)
            cta.fill(b, 0.0)
        """,
        "256",
        "128",
    ),
    "OX7009": scripts(
        """
        import oxidecopy as ox


        def arrive(full: ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]) -> None:
            token = full.arrive()
            <gap>
        """,
        "",
        "full.wait(token)",
    ),
}
