"""`CudaEngine`: verified programs on a GPU, by the precompiled interpreter and the driver API."""

from __future__ import annotations

import warnings
from functools import partial
from importlib.resources.abc import Traversable
from threading import RLock
from typing import Final, final
from weakref import ref

from oxidecopy.engines.base import Bindings, Buffer, Outcome, RawLaunch
from oxidecopy.engines.cuda import memory, module, peer, sharing
from oxidecopy.engines.cuda.code.encode import encode
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import Driver, load_driver
from oxidecopy.engines.cuda.graph import CudaGraph
from oxidecopy.engines.cuda.launch import LaunchShape
from oxidecopy.engines.cuda.memory import CudaBuffer, owned_by
from oxidecopy.engines.cuda.module import CodeFile, Interpreter
from oxidecopy.engines.cuda.prepared import Code, CudaLaunch, Room
from oxidecopy.engines.cuda.quiet import upload
from oxidecopy.engines.cuda.raw import RawLauncher
from oxidecopy.engines.cuda.report import Facts
from oxidecopy.engines.cuda.slots import Watch
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.engines.cuda.tensor_map import MapEncoder
from oxidecopy.engines.cuda.wait_limit import wait_limit_us
from oxidecopy.errors import Diagnostic, ExecutionError
from oxidecopy.program.verified import VerifiedProgram

CODES_MAX: Final = 256  # programs kept ready per engine, as many as proofs are kept


@final
class CudaEngine:
    """A GPU.

    Args:
        ordinal: as in `cuda:0`.
        driver: NVIDIA's bindings, or what has their shape.
        checked: wait for each launch, also for those on a stream, and give up waits sooner.
        kernels: the folder with the interpreter's machine code; None for the package's own.
        limit_us: how long a wait may take; None for what the environment says.

    Raises:
        DeviceError: there is no such GPU, or no machine code for it.
    """

    def __init__(
        self,
        ordinal: int = 0,
        *,
        driver: Driver | None = None,
        checked: bool = False,
        kernels: Traversable | None = None,
        limit_us: int | None = None,
    ) -> None:
        self.checked = checked
        self.limit_us = wait_limit_us(checked=checked) if limit_us is None else limit_us
        self.context = PrimaryContext(load_driver() if driver is None else driver, ordinal)
        self.name = f"cuda:{ordinal}"
        self.sm = self.context.gpu.sm
        self.watch = Watch(self.context)
        self.context.after_wait.append(partial(_ask, ref(self.watch)))  # a context does not keep its engine alive
        encoder = MapEncoder(self.context.driver)
        self._room = Room(context=self.context, encoder=encoder, watch=self.watch)
        self._raw = RawLauncher(self.context, encoder)
        self._kernels = kernels
        self._loaded: Interpreter | None = None
        self._codes: dict[int, Code] = {}
        # Made while another library captured their stream: its graph may replay them for as long as it likes, so they are never let go.
        self._captured: list[CudaLaunch] = []
        self._lock = RLock()

    # ---- memory
    def room_bytes(self) -> int:
        """Free memory of the device."""
        return self.context.memory_info()[0]

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Device memory, aligned to 256 bytes; it lives as long as the buffer is held, and until the launches that use it are done."""
        return CudaBuffer.allocate(self.context, nbytes)

    def free(self, buffer: Buffer) -> None:
        """Frees a buffer now; using it afterwards is an error."""
        owned_by(self.context, buffer).free()

    def fill(self, buffer: Buffer, offset: int, nbytes: int, value: int) -> None:
        memory.fill(owned_by(self.context, buffer), offset, nbytes, value)

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        memory.write(owned_by(self.context, buffer), offset, data)

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> bytes:
        """Copies bytes back, after the launches that use the buffer; raises what they have to say."""
        data = memory.read(owned_by(self.context, buffer), offset, nbytes)
        self.watch.check()
        return data

    # ---- other libraries
    @property
    def dlpack_device(self) -> tuple[int, int]:
        """Type and number of the device, as DLPack counts."""
        return sharing.DLPACK_CUDA, self.context.ordinal

    def borrow(self, address: int, nbytes: int, *, keep: object, readonly: bool) -> tuple[CudaBuffer, int]:
        """Memory that `keep` owns; that nothing writes to read-only memory is for the caller to see to."""
        return CudaBuffer.borrow(self.context, address, nbytes, keep=keep), 0

    def reach(self, buffer: Buffer) -> tuple[CudaBuffer, int]:
        """Memory of another GPU of this host, at the same addresses."""
        return peer.reach(self.context, buffer), 0

    def lend(self, buffer: Buffer, stream: int | None) -> tuple[int, object]:
        """Its address, and what the borrower holds; `stream` waits for all that uses it now."""
        return sharing.lend(owned_by(self.context, buffer), stream)

    def order(self, after: int, before: object) -> None:
        """What stream `before` is given from now on starts after what `after` was given until now."""
        sharing.order(self.context, after, before)

    # ---- running
    def run(self, verified: VerifiedProgram, bindings: Bindings) -> Outcome:
        """Runs a launch to its end on the default stream, after whatever uses its memory on other streams.

        Raises:
            DeadlockError: a wait did not end within the limit.
            EarlierFaultError: the context was lost before; nothing was started.
            DeviceFaultError: a kernel faulted.
            ExecutionError: the arguments are not those the proof was made for, or the report of the launch says so.
        """
        launch = self.prepare(verified, bindings)
        try:
            launch.run()
        finally:
            launch.end()
        return Outcome()

    def prepare(
        self,
        verified: VerifiedProgram,
        bindings: Bindings,
        *,
        stream: object = None,
        cooperative: bool = False,
        programmatic: bool = False,
    ) -> CudaLaunch:
        """Packs a launch. On the default stream (None) a call of it waits for its end, on others it does not, unless checked."""
        self.context.health()
        on = Stream.given(self.context, stream)
        code = self.code_of(verified)
        if programmatic and not self._interpreter().programmatic:
            raise ExecutionError(
                Diagnostic(
                    rule=module.TOO_MUCH,
                    what="this build's kernels do not wait for the one before them, as programmatic dependent launch needs",
                    got="programmatic=True",
                    required="kernels with griddepcontrol.wait",
                    fix="leave it out: only the start of the launch is hidden by it",
                )
            )
        shape = LaunchShape(
            grid=bindings.grid,
            block=(code.image.threads, 1, 1),
            cluster=verified.program.cluster,
            shared_bytes=code.image.shared_bytes,
            cooperative=cooperative,
            programmatic=programmatic,
        )
        launch = CudaLaunch(self._room, code, bindings, shape, on, waits=stream is None or self.checked)
        if stream is not None and on.capturing:
            self._captured.append(launch)
        return launch

    def run_image(self, verified: VerifiedProgram, image: Image, bindings: Bindings, stamps: CudaBuffer | None = None) -> None:
        """Runs other device code of a program than `run` does, to its end on the default stream. Raises as `run` does.

        That is code of the family timed, whose stamps go to a buffer, or records where `run` recognises the whole program.
        """
        self.context.health()
        code = self._make_ready(verified, image)
        cluster = verified.program.cluster
        shape = LaunchShape(grid=bindings.grid, block=(image.threads, 1, 1), cluster=cluster, shared_bytes=image.shared_bytes)
        launch = CudaLaunch(self._room, code, bindings, shape, Stream.given(self.context, None), waits=True)
        try:
            if stamps is not None:
                launch.block.write(image.with_counter(launch.block.data, stamps.address))
                launch.buffers = (*launch.buffers, stamps)
            launch.run()
        finally:
            launch.end()

    def graph(self) -> CudaGraph:
        """A graph without launches."""
        return CudaGraph(self.context, self.watch)

    def launch_raw(self, launch: RawLaunch, stream: object) -> None:
        """Launches a kernel of the user's; on the default stream (None) it runs to its end."""
        on, waits = Stream.given(self.context, stream), stream is None or self.checked
        if waits:
            self.context.health()
        self._raw.launch(launch, on)
        if waits and not on.capturing:
            on.synchronize()

    # ---- waiting
    def synchronize(self) -> None:
        """Waits for all that was started in the context, and raises what launches have to say."""
        self.context.synchronize()
        self.context.waited()

    def close(self) -> None:
        """Waits for the launches in flight and lets go of everything; the engine cannot be used any more."""
        self.context.close()

    # ---- code
    @property
    def code_file(self) -> CodeFile:
        """The interpreter that fits this GPU; it is loaded when it is first asked for."""
        return self._interpreter().code

    def code_of(self, verified: VerifiedProgram) -> Code:
        """The program made ready for the launch that it was verified for."""
        with self._lock:
            kept = self._codes.get(id(verified))  # what is kept keeps the proof, so its id stays its own
            if kept is None:
                if len(self._codes) >= CODES_MAX:
                    self._codes.pop(next(iter(self._codes)))
                kept = self._codes[id(verified)] = self._make_ready(verified, encode(verified))
            return kept

    def _make_ready(self, verified: VerifiedProgram, image: Image) -> Code:
        launch, program = verified.assumptions.launch, verified.program
        loaded = self._interpreter()
        with self.context, self.context.relaxed():
            kernel = loaded.kernel(image.entry_point)
            kernel.allow(threads=image.threads, shared_bytes=image.shared_bytes, cluster_size=program.cluster_size)
        return Code(
            verified=verified,
            image=image,
            kernel=kernel,
            records=upload(self.context, image.uploaded) if image.in_memory else None,
            facts=Facts(
                image=image, grid=launch.grid, limit_us=self.limit_us, sm=self.sm, constants=launch.environment(), site=program.site
            ),
        )

    def _interpreter(self) -> Interpreter:
        with self._lock:
            if self._loaded is None:
                gpu = self.context.gpu
                with self.context, self.context.relaxed():
                    self._loaded = module.interpreter(self.context.driver, gpu.sm, gpu.shared_bytes_block, self._kernels)
                if self._loaded.code.is_ptx:
                    warnings.warn(module.describe(self._loaded.code, gpu.sm), RuntimeWarning, stacklevel=2)
            return self._loaded


def _ask(watch: ref[Watch]) -> None:
    watching = watch()
    if watching is not None:
        watching.check()
