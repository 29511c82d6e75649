"""Scripts that need a GPU: `dev` is one there. The tests run them on a driver of their own."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.verifier_scripts import Twins, scripts

ON_GPU: Final[dict[str, Twins]] = {
    "OX5306": Twins("dev.engine.close()\ndev.zeros((4, 4), ox.f32)\n", "dev.zeros((4, 4), ox.f32)\ndev.engine.close()\n"),
    "OX5312": scripts(
        """
        x, a = np.zeros(64, np.float32), dev.zeros((64,), ox.f32)
        dev.borrow_pointer(<gap>, (64,), ox.f32, owner=(x, a))
        """,
        "x.ctypes.data",
        "a.buffer.address",
    ),
    "OX5340": scripts(
        """
        @ox.pipeline(threads=1024)
        def kernel(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D1]) -> None:
            tile = cta.shared(ox.f32, (4096,), align=ox.A128)
            cta.fill(tile, 1.0)
            cta.sync()
            cta.store(out, tile, (cta.block_idx.x * 4096,))


        kernel[<gap>].attributes(cooperative=True)(dev.empty((4096 * <gap>,), ox.f32))
        """,
        "5000",
        "2",
    ),
}
