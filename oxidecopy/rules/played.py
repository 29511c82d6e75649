"""Scripts of rules that take what is not here: a library, a broken install, a longer program, a machine. Something plays its part.

Each stand-in is one object or one call replaced while the script runs, as `unittest.mock` does it; what refuses is the package itself.
"""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.verifier_scripts import Twins, scripts

ONES: Final = """\
@ox.pipeline(threads=32)
def ones(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(ox.f32, (4, 32), align=ox.A128)
    cta.fill(tile, 1.0)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * 4, 0))


"""

PLAYED: Final[dict[str, Twins]] = {
    "OX2056": scripts(
        """
        from dataclasses import replace
        from unittest.mock import MagicMock

        from oxidecopy.engines.cuda.encode_call import EncodeCalls

        parameters = ox.TmaDescriptor.tiled(dev.empty((64,), ox.f32), box=(64,)).parameters
        library = MagicMock()  # as NVIDIA's
        EncodeCalls(library).encode(replace(parameters, box_dim=<gap>))
        """,
        "None",
        "(64,)",
    ),
    "OX5050": scripts(
        """
        from unittest.mock import patch

        from oxidecopy.frameworks import torch as operators

        operators._torch.cache_clear()
        with patch.dict("sys.modules", torch=None):  # as where it is not installed
            <gap>
        """,
        'operators.torch_op("mine::zero", mutates=("x",))(lambda on, x: None)',
        "dev.borrow(np.zeros(4, np.float32), ox.f32, rank=1)  # arrays of any library, which need no operator",
    ),
    "OX5051": scripts(
        """
        from unittest.mock import MagicMock, patch

        from oxidecopy.frameworks import torch as operators


        def zero(<gap>x: float) -> None: ...


        with patch.object(operators, "_torch", MagicMock()):  # as torch, which takes what it is given
            operators.torch_op("mine::zero", mutates=())(zero)
        """,
        "",
        "on: operators.On, ",
    ),
    "OX5052": scripts(
        """
        from types import SimpleNamespace
        from unittest.mock import patch

        from oxidecopy.frameworks import torch as operators


        class Tensor:
            def __init__(self, where: str) -> None:
                self.device = SimpleNamespace(type=where)


        def both(on: operators.On, x: Tensor, y: Tensor) -> None: ...


        class Op:
            def __init__(self, name: str, body, mutates_args) -> None:
                self.body = body

            def register_fake(self, fake) -> None: ...

            def __call__(self, *tensors: Tensor) -> None:
                self.body(*tensors)


        torch = SimpleNamespace(Tensor=Tensor, library=SimpleNamespace(custom_op=Op))
        with patch.object(operators, "_torch", lambda: torch):  # as torch, as far as operators ask
            operators.torch_op("mine::both", mutates=())(both)(Tensor("cpu"), Tensor(<gap>))
        """,
        '"cuda"',
        '"cpu"',
    ),
    "OX5056": scripts(
        """
        from unittest.mock import MagicMock, patch

        from oxidecopy.frameworks import groups

        torch = MagicMock()
        torch.cuda.device_count.return_value = 0  # as where there is none
        started = {f"OMPI_COMM_WORLD_{name}": n for name, n in {"RANK": "0", "SIZE": "1", "LOCAL_RANK": "0", "LOCAL_SIZE": "1"}.items()}
        with patch.dict("os.environ", started), patch.object(groups, "_torch", lambda: torch), groups.joined(<gap>):
            pass
        """,
        "",
        "host=True",
    ),
    "OX5506": scripts(
        f"""\
from unittest.mock import patch

from oxidecopy.engines.cuda.code.encode import encode

{ONES}verified = ones[1].bind(dev.zeros((4, 32), ox.f32)).verify()
with patch("oxidecopy.engines.cuda.code.refusals.RECORDS_MAX", <gap>):  # as a program of that many more
    encode(verified)
""",
        "1",
        "65_535",
    ),
    "OX6012": scripts(
        """
        from pathlib import Path

        from oxidecopy.cli.lessons import find

        Path("mine").mkdir()
        Path("mine/01_load.py").touch()
        find((Path(<gap>),))
        """,
        '"nowhere"',
        '"mine"',
    ),
    "OX6013": scripts(
        """
        from types import SimpleNamespace
        from unittest.mock import patch

        from oxidecopy.bench import sim

        said = SimpleNamespace(stdout="0.03<gap>")  # as by a version that loads it
        with patch("subprocess.run", return_value=said):
            sim.import_time(1)
        """,
        " numpy",
        "",
    ),
}

_REPORTED: Final = f"""\
from oxidecopy.engines.cuda.abi import ReportKind

{ONES}launch = ones[1].prepare(dev.zeros((4, 32), ox.f32))
report = launch.prepared.slot.words
"""


def _reported(kind: str, how: str) -> Twins:
    """What a launch comes back with when its kernel has said this: one entry, as the device writes it."""
    said = f"report[0], report[1], report[4] = 1, 1, ReportKind.{kind}  # as the kernel says of {how}\n"
    return Twins(f"{_REPORTED}{said}launch()\n", f"{_REPORTED}launch()\n")


# Those on a GPU, `dev`.
PLAYED_ON_GPU: Final[dict[str, Twins]] = {
    "OX5316": scripts(
        """
        from unittest.mock import patch

        from oxidecopy.engines.cuda.engine import CudaEngine

        driver = dev.engine.context.driver
        far = ox.Device("cuda:1", CudaEngine(1, driver=driver)).zeros((4, 4), ox.f32)
        answer = (driver.CUresult.CUDA_SUCCESS, <gap>)
        with patch.object(driver, "cuDeviceCanAccessPeer", lambda *_: answer):  # as of GPUs with, or without, a link
            dev.peer(far)
        """,
        "0",
        "1",
    ),
    "OX5331": _reported("TIMEOUT", "a wait that does not end"),
    "OX5332": _reported("INDEX", "an index read from memory"),
    "OX5333": _reported("OPCODE", "a record of another version"),
    "OX5336": scripts(
        f"""\
from dataclasses import replace
from unittest.mock import patch

{ONES}gpu, out = dev.engine.context.gpu, dev.zeros((4, 32), ox.f32)
with patch.object(dev.engine.context, "gpu", replace(gpu, shared_bytes_block=<gap>)):  # as one with so much
    ones[1](out)
""",
        "256",
        "232_448",
    ),
    "OX5410": scripts(
        """
        from unittest.mock import patch

        from oxidecopy.typed.sites import LESSON_PLACES

        folder = next(place for place in LESSON_PLACES if place.is_dir()) / "kernels"
        cubin = ox.Cubin(folder / "scale.sm_90a.cubin")


        @cubin.kernel("scale", threads=128, shared_bytes=16_392)
        def scale(
            src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f32]
        ) -> None: ...


        out = dev.empty((64, 64), ox.f32)
        src = ox.TmaDescriptor.tiled(out, box=(64, 64))
        with patch.object(dev.engine, "sm", 100):  # as a GPU of that compute capability
            if <gap>:
                scale[1](src, out, 64, 64, 2.0)
        """,
        'cubin.arch == "sm_90a"',
        "cubin.runs_on(dev)",
    ),
}
