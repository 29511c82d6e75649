"""Scripts that need a GPU: `dev` is one there. The tests run them on a driver of their own.

What takes a machine that fails is shown with a driver that answers as it would: one call is replaced, by `unittest.mock`, on a GPU too.
"""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.verifier_scripts import Twins, scripts

_ONES: Final = """\
@ox.pipeline(threads=32{cluster})
def ones(cta: ox.{cta}, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (4, 32), align=ox.A128)
    cta.fill(tile, 1.0)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * 4, 0))


"""
_ALONE: Final = _ONES.format(cluster="", cta="Cta")
_IN_CLUSTERS: Final = _ONES.format(cluster=", cluster=8", cta="ClusterCta")
_CAPTURED: Final = f"""\
{_ALONE}out, graph = dev.zeros((4, 32), ox.f32), ox.Graph(dev)
launch = ones[1].prepare(out)
with graph.capture():
    graph.add(launch)
"""
_ANSWERED: Final = """\
from unittest.mock import patch

{before}driver = dev.engine.context.driver
with patch.object(driver, "{call}", lambda *_: (driver.CUresult.{code}, 0)):  # {as_if}
    {do}
"""


def _answered(call: str, code: str, as_if: str, do: str, before: str = "") -> Twins:
    """What comes of it when a call of the driver gives this answer; right is the same without."""
    wrong = _ANSWERED.format(call=call, code=f"CUDA_{code}", as_if=as_if, do=do, before=before)
    return Twins(wrong, f"{before}{do}\n")


ON_GPU: Final[dict[str, Twins]] = {
    "OX5301": _answered("cuStreamCreate", "ERROR_INVALID_VALUE", "as a driver that refuses", "ox.Stream(dev)"),
    "OX5302": _answered(
        "cuMemAllocAsync",
        "ERROR_OUT_OF_MEMORY",
        "as where others have the memory",
        "CudaBuffer.allocate(dev.engine.context, 1 << 20)",
        "from oxidecopy.engines.cuda.memory import CudaBuffer\n\n",
    ),
    "OX5303": _answered(
        "cuStreamQuery",
        "ERROR_ILLEGAL_ADDRESS",
        "as behind a kernel of another library that faulted",
        "ones[1](out)",
        f"{_ALONE}out = dev.zeros((4, 32), ox.f32)\n",
    ),
    "OX5304": _answered(
        "cuStreamSynchronize",
        "ERROR_ILLEGAL_ADDRESS",
        "as behind a kernel that faulted",
        "ones[1](out)",
        f"{_ALONE}out = dev.zeros((4, 32), ox.f32)\n",
    ),
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
    "OX5313": scripts("a = dev.zeros((4, 4), ox.f32)\ndev.engine.read(a.buffer, <gap>, 64)\n", "8", "0"),
    "OX5314": Twins(f"{_CAPTURED}    out.numpy()\n", f"{_CAPTURED}out.numpy()\n"),
    "OX5315": _answered(
        "cuStreamSynchronize",
        "ERROR_STREAM_CAPTURE_UNSUPPORTED",
        "as while another library captures the stream",
        "stream.synchronize()",
        "stream = ox.Stream(dev)\n",
    ),
    "OX5330": scripts(
        f"""\
from dataclasses import replace

{_ALONE}bound = ones[1].bind(dev.zeros((4, 32), ox.f32))
dev.engine.run(bound.verify(), replace(bound.bindings, grid=(<gap>, 1, 1)))
""",
        "2",
        "1",
    ),
    "OX5341": _answered(
        "cuOccupancyMaxActiveClusters",
        "SUCCESS",
        "as a GPU whose clusters hold fewer",
        "ones[8].attributes(cooperative=True)(out)",
        f"{_IN_CLUSTERS}out = dev.zeros((32, 32), ox.f32)\n",
    ),
    "OX6052": scripts(
        f"""\
from oxidecopy.trace import trace

{_ALONE}trace(ones[1].bind(dev.zeros((4, 32), ox.f32)), ctas=<gap>)
""",
        "[(0, 0, 0)]",
        "1",
    ),
    "OX6053": scripts(
        """\
from oxidecopy.trace import trace


@ox.pipeline(threads=96)
def many(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (4, 32), align=ox.A128)
    full = cta.barrier().init(<gap>)
    for i in range(<gap>):  # each thread has a block of its own
        with cta.thread(i):
            full.arrive()
    cta.fill(tile, 1.0)
    cta.sync()
    cta.store(out, tile, (0, 0))


trace(many[1].bind(dev.zeros((4, 32), ox.f32)))
""",
        "40",
        "4",
    ),
}
