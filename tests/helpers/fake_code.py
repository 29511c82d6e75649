"""The fake driver's calls about code: cubins, launches, tensor maps, graphs."""

from __future__ import annotations

import ctypes
import threading
from math import prod
from typing import Any

from oxidecopy.engines.sim.map_image import ALIGNMENTS, TYPES, packed
from tests.helpers.fake_gpu import FakeKernel, FakeKernelNodeParams, FakeTensorMap, Handle, Launch, cluster_of, parameters_of
from tests.helpers.fake_state import LEGACY, FakeState, Refused, driver_call


class FakeCode(FakeState):
    """Loads, configures, launches, captures."""

    # ---- code
    @driver_call(values=1)
    def cuModuleLoadData(self, image: Any) -> Any:
        return self.load_image(image)

    @driver_call(values=1)
    def cuModuleGetFunction(self, hmod: Any, name: bytes) -> Any:
        return self.find_kernel(hmod, name)

    @driver_call()
    def cuModuleUnload(self, hmod: Any) -> Any:
        self.unload_image(hmod)

    def load_image(self, code: Any) -> Handle:
        raw = bytes(memoryview(code).cast("B"))
        for image in self.images:
            if raw.startswith(image.code):
                if image.sm != self.gpus[self.here().device].sm:
                    raise Refused("NO_BINARY_FOR_GPU")
                handle = self.new_handle()
                self.libraries[handle] = image
                return Handle(handle)
        raise Refused("INVALID_IMAGE")

    def find_kernel(self, library: Any, name: bytes) -> Handle:
        if int(library) not in self.libraries:
            raise Refused("INVALID_HANDLE")
        for kernel in self.libraries[int(library)].kernels:
            if kernel.name.encode() == name:
                known = next((handle for handle, other in self.kernels.items() if other is kernel), None)
                handle = known or self.new_handle()
                self.kernels[handle] = kernel
                return Handle(handle)
        raise Refused("NOT_FOUND")

    def unload_image(self, library: Any) -> None:
        image = self.libraries.pop(int(library), None)
        if image is None:
            raise Refused("INVALID_HANDLE")
        for handle in [handle for handle, kernel in self.kernels.items() if kernel in image.kernels]:
            del self.kernels[handle]

    def kernel_of(self, handle: Any) -> FakeKernel:
        if int(handle) not in self.kernels:
            raise Refused("INVALID_HANDLE")
        return self.kernels[int(handle)]

    @driver_call(values=1)
    def cuFuncGetAttribute(self, attrib: Any, hfunc: Any) -> Any:
        kernel, name = self.kernel_of(hfunc), attrib.name.removeprefix("CU_FUNC_ATTRIBUTE_")
        set_here = self.function_attributes.get(int(hfunc), {})
        return set_here.get(int(attrib), kernel.attributes.get(name, 1024 if name == "MAX_THREADS_PER_BLOCK" else 0))

    @driver_call()
    def cuFuncSetAttribute(self, hfunc: Any, attrib: Any, value: int) -> Any:
        self.kernel_of(hfunc)
        name = attrib.name.removeprefix("CU_FUNC_ATTRIBUTE_")
        limit = {"MAX_DYNAMIC_SHARED_SIZE_BYTES": self.shared_limit(), "NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 1}.get(name)
        if limit is None or not 0 <= value <= limit:
            raise Refused("INVALID_VALUE")
        self.function_attributes.setdefault(int(hfunc), {})[int(attrib)] = value

    @driver_call(values=1)
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, func: Any, blockSize: int, dynamicSMemSize: int) -> Any:
        self.kernel_of(func)
        return self.blocks_per_sm(blockSize, dynamicSMemSize)

    @staticmethod
    def blocks_per_sm(threads: int, shared_bytes: int) -> int:
        return min(32, 2048 // max(1, threads), 233_472 // (shared_bytes + 1024))  # 1 KiB of each block is the system's

    @driver_call(values=1)
    def cuOccupancyMaxActiveClusters(self, func: Any, config: Any) -> Any:
        return self.active_clusters(func, config)

    def active_clusters(self, func: Any, config: Any) -> int:
        size = prod(cluster_of(config))
        blocks = self.blocks_per_sm(config.blockDimX * config.blockDimY * config.blockDimZ, config.sharedMemBytes)
        sms = self.gpus[self.here().device].attribute("MULTIPROCESSOR_COUNT")
        return sms * blocks // size if size <= self.kernel_of(func).max_cluster else 0

    def shared_limit(self) -> int:
        return self.gpus[self.here().device].attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    # ---- launch
    @driver_call()
    def cuLaunchKernelEx(self, config: Any, f: Any, kernelParams: Any, extra: Any) -> Any:
        launch = self.checked_launch(config, f, kernelParams)
        stream = self.stream_of(config.hStream)
        if stream.graph is not None:
            stream.graph.append(launch)
            return
        self.give(config.hStream, lambda: self.execute(launch))

    def execute(self, launch: Launch) -> None:
        self.launches.append(launch)
        if self.on_launch is not None:
            self.on_launch(launch)

    def checked_launch(self, config: Any, f: Any, kernel_params: Any) -> Launch:
        kernel = self.kernel_of(f)
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        cluster = cluster_of(config)
        threads = block[0] * block[1] * block[2]
        attributes = self.function_attributes.get(int(f), {})
        if not (0 < grid[0] < 1 << 31 and 0 < grid[1] < 1 << 16 and 0 < grid[2] < 1 << 16 and 0 < threads <= 1024):
            raise Refused("INVALID_VALUE")
        if threads > kernel.attributes.get("MAX_THREADS_PER_BLOCK", 1024):
            raise Refused("LAUNCH_OUT_OF_RESOURCES")
        if config.sharedMemBytes > max(attributes.get(8, 0), 48 * 1024):
            raise Refused("INVALID_VALUE")
        size = cluster[0] * cluster[1] * cluster[2]
        if any(extent % part for extent, part in zip(grid, cluster, strict=True)) or size > (16 if attributes.get(14, 0) else 8):
            raise Refused("INVALID_CLUSTER_SIZE")
        if not self.active_clusters(f, config):
            raise Refused("INVALID_CLUSTER_SIZE")
        cooperative = any(int(each.id) == 2 and each.value.cooperative for each in list(config.attrs)[: config.numAttrs])
        if cooperative and prod(grid) > size * self.active_clusters(f, config):
            raise Refused("COOPERATIVE_LAUNCH_TOO_LARGE")
        return Launch(
            kernel=kernel,
            grid=grid,
            block=block,
            cluster=cluster,
            shared_bytes=config.sharedMemBytes,
            stream=int(config.hStream),
            attributes={self.CUlaunchAttributeID(int(each.id)).name: 1 for each in list(config.attrs)[: config.numAttrs]},
            parameters=parameters_of(kernel, kernel_params),
        )

    # ---- tensor maps
    @driver_call(values=1)
    def cuTensorMapEncodeTiled(
        self,
        tensorDataType: Any,
        tensorRank: int,
        globalAddress: Any,
        globalDim: Any,
        globalStrides: Any,
        boxDim: Any,
        elementStrides: Any,
        interleave: Any,
        swizzle: Any,
        l2Promotion: Any,
        oobFill: Any,
    ) -> Any:
        return encoded(
            tensorDataType,
            tensorRank,
            globalAddress,
            (globalDim, globalStrides, boxDim, elementStrides),
            (),
            (interleave, swizzle, l2Promotion, oobFill),
        )

    @driver_call(values=1)
    def cuTensorMapEncodeIm2col(
        self,
        tensorDataType: Any,
        tensorRank: int,
        globalAddress: Any,
        globalDim: Any,
        globalStrides: Any,
        pixelBoxLowerCorner: Any,
        pixelBoxUpperCorner: Any,
        channelsPerPixel: int,
        pixelsPerColumn: int,
        elementStrides: Any,
        interleave: Any,
        swizzle: Any,
        l2Promotion: Any,
        oobFill: Any,
    ) -> Any:
        copied = (*pixelBoxLowerCorner, *pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn)
        return encoded(
            tensorDataType,
            tensorRank,
            globalAddress,
            (globalDim, globalStrides, elementStrides),
            copied,
            (interleave, swizzle, l2Promotion, oobFill),
        )

    @driver_call(values=1)
    def cuTensorMapEncodeIm2colWide(
        self,
        tensorDataType: Any,
        tensorRank: int,
        globalAddress: Any,
        globalDim: Any,
        globalStrides: Any,
        pixelBoxLowerCornerWidth: int,
        pixelBoxUpperCornerWidth: int,
        channelsPerPixel: int,
        pixelsPerColumn: int,
        elementStrides: Any,
        interleave: Any,
        mode: Any,
        swizzle: Any,
        l2Promotion: Any,
        oobFill: Any,
    ) -> Any:
        copied = (pixelBoxLowerCornerWidth, pixelBoxUpperCornerWidth, channelsPerPixel, pixelsPerColumn)
        return encoded(
            tensorDataType,
            tensorRank,
            globalAddress,
            (globalDim, globalStrides, elementStrides),
            copied,
            (interleave, mode, swizzle, l2Promotion, oobFill),
        )

    @driver_call()
    def cuTensorMapReplaceAddress(self, tensorMap: Any, globalAddress: Any) -> Any:
        if int(globalAddress) % 16 or not int(globalAddress):
            raise Refused("INVALID_VALUE")
        tensorMap.address = int(globalAddress)

    # ---- graphs
    @driver_call()
    def cuStreamBeginCapture(self, hStream: Any, mode: Any) -> Any:
        stream = self.stream_of(hStream)
        if stream.graph is not None or int(hStream) in (0, LEGACY):
            raise Refused("STREAM_CAPTURE_UNSUPPORTED")
        stream.graph, stream.capture_mode, stream.captured_by = [], int(mode), threading.get_ident()

    @driver_call(values=1)
    def cuStreamEndCapture(self, hStream: Any) -> Any:
        stream = self.stream_of(hStream)
        if stream.graph is None:
            raise Refused("ILLEGAL_STATE")
        handle = self.new_handle()
        self.graphs[handle], stream.graph = stream.graph, None
        for launch in self.graphs[handle]:
            self.nodes[self.new_handle()] = launch
        return Handle(handle)

    @driver_call(values=1)
    def cuGraphInstantiate(self, hGraph: Any, flags: int) -> Any:
        if int(hGraph) not in self.graphs:
            raise Refused("INVALID_VALUE")
        handle = self.new_handle()
        self.graph_execs[handle] = list(self.graphs[int(hGraph)])
        return Handle(handle)

    @driver_call()
    def cuGraphLaunch(self, hGraphExec: Any, hStream: Any) -> Any:
        if int(hGraphExec) not in self.graph_execs:
            raise Refused("INVALID_VALUE")
        for launch in self.graph_execs[int(hGraphExec)]:
            self.give(hStream, lambda launch=launch: self.execute(launch))  # type: ignore[misc]

    @driver_call()
    def cuGraphExecDestroy(self, hGraphExec: Any) -> Any:
        if self.graph_execs.pop(int(hGraphExec), None) is None:
            raise Refused("INVALID_VALUE")

    @driver_call()
    def cuGraphDestroy(self, hGraph: Any) -> Any:
        if self.graphs.pop(int(hGraph), None) is None:
            raise Refused("INVALID_VALUE")

    @driver_call(values=2)
    def cuGraphGetNodes(self, hGraph: Any, numNodes: int = 0) -> Any:
        if int(hGraph) not in self.graphs:
            raise Refused("INVALID_VALUE")
        nodes = [Handle(node) for launch in self.graphs[int(hGraph)] for node, other in self.nodes.items() if other is launch]
        return nodes[:numNodes], len(nodes)

    @driver_call(values=1)
    def cuGraphNodeGetType(self, hNode: Any) -> Any:
        if int(hNode) not in self.nodes:
            raise Refused("INVALID_VALUE")
        return self.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL

    @driver_call(values=1)
    def cuGraphKernelNodeGetParams(self, hNode: Any) -> Any:
        if int(hNode) not in self.nodes:
            raise Refused("INVALID_VALUE")
        launch, made = self.nodes[int(hNode)], FakeKernelNodeParams()
        made.func = Handle(next(handle for handle, kernel in self.kernels.items() if kernel is launch.kernel))
        made.gridDimX, made.gridDimY, made.gridDimZ = launch.grid
        made.blockDimX, made.blockDimY, made.blockDimZ = launch.block
        made.sharedMemBytes = launch.shared_bytes
        made.kernelParams = self.pointers_to(launch)
        return made

    def pointers_to(self, launch: Launch) -> int:
        """The driver's own copy of a node's parameters, as `void **`."""
        copies = [ctypes.create_string_buffer(data, len(data)) for data in launch.parameters]
        pointers = (ctypes.c_void_p * (len(copies) or 1))(*map(ctypes.addressof, copies))
        self.node_parameters.append((copies, pointers))
        return ctypes.addressof(pointers)

    @driver_call()
    def cuGraphExecKernelNodeSetParams(self, hGraphExec: Any, hNode: Any, nodeParams: Any) -> Any:
        if int(hGraphExec) not in self.graph_execs or int(hNode) not in self.nodes:
            raise Refused("INVALID_VALUE")
        old = self.nodes[int(hNode)]
        new = Launch(
            kernel=self.kernel_of(nodeParams.func),
            grid=(nodeParams.gridDimX, nodeParams.gridDimY, nodeParams.gridDimZ),
            block=(nodeParams.blockDimX, nodeParams.blockDimY, nodeParams.blockDimZ),
            cluster=old.cluster,
            shared_bytes=nodeParams.sharedMemBytes,
            stream=old.stream,
            attributes=old.attributes,
            parameters=parameters_of(self.kernel_of(nodeParams.func), nodeParams.kernelParams),
        )
        execs = self.graph_execs[int(hGraphExec)]
        places = [i for i, launch in enumerate(execs) if launch is old]
        if not places:
            raise Refused("INVALID_VALUE")
        execs[places[0]] = new
        self.nodes[int(hNode)] = new


def encoded(
    dtype: Any, rank: int, address: Any, arrays: tuple[Any, ...], copied: tuple[int, ...], options: tuple[Any, ...]
) -> FakeTensorMap:
    """A map of these arguments: arrays of the bindings' own integers, plain numbers, enumerators."""
    if not all(isinstance(entry, Handle) for each in arrays for entry in each):
        raise TypeError("Cannot convert int to cuda.bindings.driver.cuuint64_t")
    dims, strides, *others = (tuple(map(int, each)) for each in arrays)
    fits = 1 <= rank <= 5 and all(len(each) == rank for each in (dims, *others)) and len(strides) >= max(1, rank - 1)
    box = others[0] if len(others) == 2 else (1,)
    if not fits or int(address) % 16 or not int(address) or not all(1 <= each <= 256 for each in box):
        raise Refused("INVALID_VALUE")
    made = FakeTensorMap()
    made.arguments = (int(dtype), rank, dims, strides, *others, *map(int, copied), *map(int, options))
    if int(dtype) < len(TYPES) and len(options) == 4 and int(options[1]) < len(ALIGNMENTS):
        *boxes, steps = others
        chosen = tuple(map(int, options))
        data = packed(int(dtype), rank, 0, dims, strides, steps, chosen, box=(*boxes, ())[0], im2col=copied)
        made.raw[:] = list(data)
    else:  # nobody has measured where those go
        made.raw[8:16] = list((hash(made.arguments) & (1 << 64) - 1).to_bytes(8, "little"))
    made.address = int(address)
    return made
