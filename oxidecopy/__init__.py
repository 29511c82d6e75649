"""oxidecopy: typed asynchronous copies for NVIDIA's Tensor Memory Accelerator.

Names are loaded when they are first used: `import oxidecopy` imports neither numpy nor cuda.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from oxidecopy._version import __version__ as __version__

if TYPE_CHECKING:
    from oxidecopy import errors as errors
    from oxidecopy.engines.cuda.elf import KernelInfo as KernelInfo
    from oxidecopy.engines.cuda.elf import ParameterInfo as ParameterInfo
    from oxidecopy.host.bound import BoundLaunch as BoundLaunch
    from oxidecopy.host.bound import PreparedLaunch as PreparedLaunch
    from oxidecopy.host.cubin import Cubin as Cubin
    from oxidecopy.host.cubin_launch import CubinKernel as CubinKernel
    from oxidecopy.host.cubin_launch import CubinLaunch as CubinLaunch
    from oxidecopy.host.cubin_launch import CubinLaunchable as CubinLaunchable
    from oxidecopy.host.device import Device as Device
    from oxidecopy.host.graph import Graph as Graph
    from oxidecopy.host.graph import GraphLaunch as GraphLaunch
    from oxidecopy.host.pipeline import Grid as Grid
    from oxidecopy.host.pipeline import Launchable as Launchable
    from oxidecopy.host.pipeline import Pipeline as Pipeline
    from oxidecopy.host.pipeline import PipelineOf as PipelineOf
    from oxidecopy.host.pipeline import SupportsCudaStream as SupportsCudaStream
    from oxidecopy.host.pipeline import pipeline as pipeline
    from oxidecopy.host.recipe import Recipe as Recipe
    from oxidecopy.host.safetensors import read_safetensors as read_safetensors
    from oxidecopy.host.script import run_recipes as run_recipes
    from oxidecopy.host.stream import Event as Event
    from oxidecopy.host.stream import Stream as Stream
    from oxidecopy.interop.foreign import SupportsCudaArray as SupportsCudaArray
    from oxidecopy.interop.foreign import SupportsDLPack as SupportsDLPack
    from oxidecopy.maps.parameters import MapParameters as MapParameters
    from oxidecopy.maps.validate import Verdict as Verdict
    from oxidecopy.maps.validate import validate as validate
    from oxidecopy.oneliners.copying import copy as copy
    from oxidecopy.oneliners.explanation import Explanation as Explanation
    from oxidecopy.oneliners.gathering import gather_rows as gather_rows
    from oxidecopy.oneliners.multiplying import matmul as matmul
    from oxidecopy.oneliners.reducing import reduce_into as reduce_into
    from oxidecopy.oneliners.transforming import Value as Value
    from oxidecopy.oneliners.transforming import transform as transform
    from oxidecopy.oneliners.transforming import value as value
    from oxidecopy.tiles import order as order
    from oxidecopy.tiles.cta import ClusterCta as ClusterCta
    from oxidecopy.tiles.cta import Cta as Cta
    from oxidecopy.tiles.elem import Elem as Elem
    from oxidecopy.tiles.elem import Truth as Truth
    from oxidecopy.tiles.elem import Vector as Vector
    from oxidecopy.tiles.elem import per_column as per_column
    from oxidecopy.tiles.elem import per_row as per_row
    from oxidecopy.tiles.group import ClusterGroup as ClusterGroup
    from oxidecopy.tiles.group import Group as Group
    from oxidecopy.tiles.ring import Ring as Ring
    from oxidecopy.tiles.roles import Roles as Roles
    from oxidecopy.tiles.roles import roles as roles
    from oxidecopy.tiles.stage import Landed as Landed
    from oxidecopy.tiles.stage import Slot as Slot
    from oxidecopy.tiles.store_ring import StoreRing as StoreRing
    from oxidecopy.tiles.work import StageAt as StageAt
    from oxidecopy.tiles.work import Work as Work
    from oxidecopy.typed import cache as cache
    from oxidecopy.typed import reduce as reduce
    from oxidecopy.typed.barrier import ManagedBarrier as ManagedBarrier
    from oxidecopy.typed.barrier import TmaBarrierHandle as TmaBarrierHandle
    from oxidecopy.typed.barrier_array import ManagedBarriers as ManagedBarriers
    from oxidecopy.typed.bulk import bulk_g2s as bulk_g2s
    from oxidecopy.typed.bulk import bulk_g2s_multicast as bulk_g2s_multicast
    from oxidecopy.typed.bulk import bulk_prefetch as bulk_prefetch
    from oxidecopy.typed.bulk import bulk_reduce as bulk_reduce
    from oxidecopy.typed.bulk import bulk_reduce_s2s as bulk_reduce_s2s
    from oxidecopy.typed.bulk import bulk_s2g as bulk_s2g
    from oxidecopy.typed.bulk import bulk_s2s as bulk_s2s
    from oxidecopy.typed.cache import CachePolicy as CachePolicy
    from oxidecopy.typed.cache import Eviction as Eviction
    from oxidecopy.typed.cache import RestEviction as RestEviction
    from oxidecopy.typed.cta import Dim3 as Dim3
    from oxidecopy.typed.descriptor import TmaDescriptor as TmaDescriptor
    from oxidecopy.typed.descriptor_table import DescriptorTable as DescriptorTable
    from oxidecopy.typed.dtypes import DType as DType
    from oxidecopy.typed.dtypes import HasAdd as HasAdd
    from oxidecopy.typed.dtypes import HasBits as HasBits
    from oxidecopy.typed.dtypes import HasIncDec as HasIncDec
    from oxidecopy.typed.dtypes import HasMinMax as HasMinMax
    from oxidecopy.typed.dtypes import HasStore as HasStore
    from oxidecopy.typed.dtypes import bf16 as bf16
    from oxidecopy.typed.dtypes import e4m3 as e4m3
    from oxidecopy.typed.dtypes import e5m2 as e5m2
    from oxidecopy.typed.dtypes import f16 as f16
    from oxidecopy.typed.dtypes import f32 as f32
    from oxidecopy.typed.dtypes import f32_ftz as f32_ftz
    from oxidecopy.typed.dtypes import f64 as f64
    from oxidecopy.typed.dtypes import i32 as i32
    from oxidecopy.typed.dtypes import i64 as i64
    from oxidecopy.typed.dtypes import tf32 as tf32
    from oxidecopy.typed.dtypes import tf32_ftz as tf32_ftz
    from oxidecopy.typed.dtypes import u4x16_align8b as u4x16_align8b
    from oxidecopy.typed.dtypes import u4x16_align16b as u4x16_align16b
    from oxidecopy.typed.dtypes import u6x16_align16b as u6x16_align16b
    from oxidecopy.typed.dtypes import u8 as u8
    from oxidecopy.typed.dtypes import u16 as u16
    from oxidecopy.typed.dtypes import u32 as u32
    from oxidecopy.typed.dtypes import u64 as u64
    from oxidecopy.typed.geometry import A16 as A16
    from oxidecopy.typed.geometry import A128 as A128
    from oxidecopy.typed.geometry import A256 as A256
    from oxidecopy.typed.geometry import A512 as A512
    from oxidecopy.typed.geometry import A1024 as A1024
    from oxidecopy.typed.geometry import D1 as D1
    from oxidecopy.typed.geometry import D2 as D2
    from oxidecopy.typed.geometry import D3 as D3
    from oxidecopy.typed.geometry import D4 as D4
    from oxidecopy.typed.geometry import D5 as D5
    from oxidecopy.typed.geometry import AnyBox as AnyBox
    from oxidecopy.typed.geometry import AnySwizzle as AnySwizzle
    from oxidecopy.typed.geometry import Box1 as Box1
    from oxidecopy.typed.geometry import Box2 as Box2
    from oxidecopy.typed.geometry import Box3 as Box3
    from oxidecopy.typed.geometry import Box4 as Box4
    from oxidecopy.typed.geometry import Box5 as Box5
    from oxidecopy.typed.geometry import Swizzle32B as Swizzle32B
    from oxidecopy.typed.geometry import Swizzle64B as Swizzle64B
    from oxidecopy.typed.geometry import Swizzle128B as Swizzle128B
    from oxidecopy.typed.geometry import Swizzle128BAtom32B as Swizzle128BAtom32B
    from oxidecopy.typed.geometry import Swizzle128BAtom32BFlip8B as Swizzle128BAtom32BFlip8B
    from oxidecopy.typed.geometry import Swizzle128BAtom64B as Swizzle128BAtom64B
    from oxidecopy.typed.geometry import SwizzleNone as SwizzleNone
    from oxidecopy.typed.global_array import GlobalArray as GlobalArray
    from oxidecopy.typed.im2col import Im2colDescriptor as Im2colDescriptor
    from oxidecopy.typed.im2col import Im2colWideDescriptor as Im2colWideDescriptor
    from oxidecopy.typed.leader import ClusterLeader as ClusterLeader
    from oxidecopy.typed.leader import Leader as Leader
    from oxidecopy.typed.reduce import ReduceOp as ReduceOp
    from oxidecopy.typed.scalar import Scalar as Scalar
    from oxidecopy.typed.scalar import ScalarValue as ScalarValue
    from oxidecopy.typed.smem import SharedArray as SharedArray
    from oxidecopy.typed.smem import SharedArrays as SharedArrays
    from oxidecopy.typed.states import AnyId as AnyId
    from oxidecopy.typed.states import GeneralBarrier as GeneralBarrier
    from oxidecopy.typed.states import Invalidated as Invalidated
    from oxidecopy.typed.states import Kind as Kind
    from oxidecopy.typed.states import MmaBarrier as MmaBarrier
    from oxidecopy.typed.states import Owned as Owned
    from oxidecopy.typed.states import Ready as Ready
    from oxidecopy.typed.states import State as State
    from oxidecopy.typed.states import TmaBarrier as TmaBarrier
    from oxidecopy.typed.states import Uninit as Uninit
    from oxidecopy.typed.symbolic import Idx as Idx
    from oxidecopy.typed.symbolic import Pred as Pred
    from oxidecopy.typed.symbolic import SymIdx as SymIdx
    from oxidecopy.typed.symbolic import maximum as maximum
    from oxidecopy.typed.symbolic import minimum as minimum
    from oxidecopy.typed.tensormap import ReleasedTensorMap as ReleasedTensorMap
    from oxidecopy.typed.tensormap import TensorMapDraft as TensorMapDraft
    from oxidecopy.typed.tensormap import TensorMapSlot as TensorMapSlot
    from oxidecopy.typed.tokens import BarrierToken as BarrierToken
    from oxidecopy.typed.tokens import TxToken as TxToken

# Public name -> module that defines it; a test keeps this equal to the imports above.
_HOME: Final = {
    "KernelInfo": "oxidecopy.engines.cuda.elf",
    "ParameterInfo": "oxidecopy.engines.cuda.elf",
    "BoundLaunch": "oxidecopy.host.bound",
    "PreparedLaunch": "oxidecopy.host.bound",
    "Cubin": "oxidecopy.host.cubin",
    "CubinKernel": "oxidecopy.host.cubin_launch",
    "CubinLaunch": "oxidecopy.host.cubin_launch",
    "CubinLaunchable": "oxidecopy.host.cubin_launch",
    "Device": "oxidecopy.host.device",
    "Graph": "oxidecopy.host.graph",
    "GraphLaunch": "oxidecopy.host.graph",
    "Grid": "oxidecopy.host.pipeline",
    "Launchable": "oxidecopy.host.pipeline",
    "Pipeline": "oxidecopy.host.pipeline",
    "PipelineOf": "oxidecopy.host.pipeline",
    "SupportsCudaStream": "oxidecopy.host.pipeline",
    "pipeline": "oxidecopy.host.pipeline",
    "Recipe": "oxidecopy.host.recipe",
    "MapParameters": "oxidecopy.maps.parameters",
    "Verdict": "oxidecopy.maps.validate",
    "validate": "oxidecopy.maps.validate",
    "copy": "oxidecopy.oneliners.copying",
    "Explanation": "oxidecopy.oneliners.explanation",
    "gather_rows": "oxidecopy.oneliners.gathering",
    "matmul": "oxidecopy.oneliners.multiplying",
    "reduce_into": "oxidecopy.oneliners.reducing",
    "Value": "oxidecopy.oneliners.transforming",
    "transform": "oxidecopy.oneliners.transforming",
    "value": "oxidecopy.oneliners.transforming",
    "Elem": "oxidecopy.tiles.elem",
    "Truth": "oxidecopy.tiles.elem",
    "Vector": "oxidecopy.tiles.elem",
    "per_column": "oxidecopy.tiles.elem",
    "per_row": "oxidecopy.tiles.elem",
    "Landed": "oxidecopy.tiles.stage",
    "Ring": "oxidecopy.tiles.ring",
    "Slot": "oxidecopy.tiles.stage",
    "Roles": "oxidecopy.tiles.roles",
    "roles": "oxidecopy.tiles.roles",
    "StoreRing": "oxidecopy.tiles.store_ring",
    "StageAt": "oxidecopy.tiles.work",
    "Work": "oxidecopy.tiles.work",
    "read_safetensors": "oxidecopy.host.safetensors",
    "run_recipes": "oxidecopy.host.script",
    "Event": "oxidecopy.host.stream",
    "Stream": "oxidecopy.host.stream",
    "SupportsCudaArray": "oxidecopy.interop.foreign",
    "SupportsDLPack": "oxidecopy.interop.foreign",
    "ManagedBarrier": "oxidecopy.typed.barrier",
    "TmaBarrierHandle": "oxidecopy.typed.barrier",
    "ManagedBarriers": "oxidecopy.typed.barrier_array",
    "ClusterCta": "oxidecopy.tiles.cta",
    "Cta": "oxidecopy.tiles.cta",
    "bulk_g2s": "oxidecopy.typed.bulk",
    "bulk_g2s_multicast": "oxidecopy.typed.bulk",
    "bulk_prefetch": "oxidecopy.typed.bulk",
    "bulk_reduce": "oxidecopy.typed.bulk",
    "bulk_reduce_s2s": "oxidecopy.typed.bulk",
    "bulk_s2g": "oxidecopy.typed.bulk",
    "bulk_s2s": "oxidecopy.typed.bulk",
    "CachePolicy": "oxidecopy.typed.cache",
    "Eviction": "oxidecopy.typed.cache",
    "RestEviction": "oxidecopy.typed.cache",
    "Dim3": "oxidecopy.typed.cta",
    "TmaDescriptor": "oxidecopy.typed.descriptor",
    "DescriptorTable": "oxidecopy.typed.descriptor_table",
    "DType": "oxidecopy.typed.dtypes",
    "HasAdd": "oxidecopy.typed.dtypes",
    "HasBits": "oxidecopy.typed.dtypes",
    "HasIncDec": "oxidecopy.typed.dtypes",
    "HasStore": "oxidecopy.typed.dtypes",
    "HasMinMax": "oxidecopy.typed.dtypes",
    "bf16": "oxidecopy.typed.dtypes",
    "e4m3": "oxidecopy.typed.dtypes",
    "e5m2": "oxidecopy.typed.dtypes",
    "f16": "oxidecopy.typed.dtypes",
    "f32": "oxidecopy.typed.dtypes",
    "f32_ftz": "oxidecopy.typed.dtypes",
    "f64": "oxidecopy.typed.dtypes",
    "i32": "oxidecopy.typed.dtypes",
    "i64": "oxidecopy.typed.dtypes",
    "tf32": "oxidecopy.typed.dtypes",
    "tf32_ftz": "oxidecopy.typed.dtypes",
    "u4x16_align8b": "oxidecopy.typed.dtypes",
    "u4x16_align16b": "oxidecopy.typed.dtypes",
    "u6x16_align16b": "oxidecopy.typed.dtypes",
    "u8": "oxidecopy.typed.dtypes",
    "u16": "oxidecopy.typed.dtypes",
    "u32": "oxidecopy.typed.dtypes",
    "u64": "oxidecopy.typed.dtypes",
    "A16": "oxidecopy.typed.geometry",
    "A128": "oxidecopy.typed.geometry",
    "A256": "oxidecopy.typed.geometry",
    "A512": "oxidecopy.typed.geometry",
    "A1024": "oxidecopy.typed.geometry",
    "AnyBox": "oxidecopy.typed.geometry",
    "AnySwizzle": "oxidecopy.typed.geometry",
    "Box1": "oxidecopy.typed.geometry",
    "Box2": "oxidecopy.typed.geometry",
    "Box3": "oxidecopy.typed.geometry",
    "Box4": "oxidecopy.typed.geometry",
    "Box5": "oxidecopy.typed.geometry",
    "D1": "oxidecopy.typed.geometry",
    "D2": "oxidecopy.typed.geometry",
    "D3": "oxidecopy.typed.geometry",
    "D4": "oxidecopy.typed.geometry",
    "D5": "oxidecopy.typed.geometry",
    "Swizzle32B": "oxidecopy.typed.geometry",
    "Swizzle64B": "oxidecopy.typed.geometry",
    "Swizzle128B": "oxidecopy.typed.geometry",
    "Swizzle128BAtom32B": "oxidecopy.typed.geometry",
    "Swizzle128BAtom32BFlip8B": "oxidecopy.typed.geometry",
    "Swizzle128BAtom64B": "oxidecopy.typed.geometry",
    "SwizzleNone": "oxidecopy.typed.geometry",
    "GlobalArray": "oxidecopy.typed.global_array",
    "ClusterGroup": "oxidecopy.tiles.group",
    "Im2colDescriptor": "oxidecopy.typed.im2col",
    "Im2colWideDescriptor": "oxidecopy.typed.im2col",
    "ClusterLeader": "oxidecopy.typed.leader",
    "Group": "oxidecopy.tiles.group",
    "Leader": "oxidecopy.typed.leader",
    "ReduceOp": "oxidecopy.typed.reduce",
    "Scalar": "oxidecopy.typed.scalar",
    "ScalarValue": "oxidecopy.typed.scalar",
    "SharedArray": "oxidecopy.typed.smem",
    "SharedArrays": "oxidecopy.typed.smem",
    "AnyId": "oxidecopy.typed.states",
    "GeneralBarrier": "oxidecopy.typed.states",
    "Invalidated": "oxidecopy.typed.states",
    "Kind": "oxidecopy.typed.states",
    "MmaBarrier": "oxidecopy.typed.states",
    "Owned": "oxidecopy.typed.states",
    "Ready": "oxidecopy.typed.states",
    "State": "oxidecopy.typed.states",
    "TmaBarrier": "oxidecopy.typed.states",
    "Uninit": "oxidecopy.typed.states",
    "Idx": "oxidecopy.typed.symbolic",
    "Pred": "oxidecopy.typed.symbolic",
    "SymIdx": "oxidecopy.typed.symbolic",
    "maximum": "oxidecopy.typed.symbolic",
    "minimum": "oxidecopy.typed.symbolic",
    "ReleasedTensorMap": "oxidecopy.typed.tensormap",
    "TensorMapDraft": "oxidecopy.typed.tensormap",
    "TensorMapSlot": "oxidecopy.typed.tensormap",
    "BarrierToken": "oxidecopy.typed.tokens",
    "TxToken": "oxidecopy.typed.tokens",
}
_MODULES: Final = {
    "order": "oxidecopy.tiles.order",
    "errors": "oxidecopy.errors",
    "reduce": "oxidecopy.typed.reduce",
    "cache": "oxidecopy.typed.cache",
}

__all__ = [
    "A16",
    "A128",
    "A256",
    "A512",
    "A1024",
    "D1",
    "D2",
    "D3",
    "D4",
    "D5",
    "AnyBox",
    "AnyId",
    "AnySwizzle",
    "BarrierToken",
    "BoundLaunch",
    "Box1",
    "Box2",
    "Box3",
    "Box4",
    "Box5",
    "CachePolicy",
    "ClusterCta",
    "ClusterGroup",
    "ClusterLeader",
    "Cta",
    "Cubin",
    "CubinKernel",
    "CubinLaunch",
    "CubinLaunchable",
    "DType",
    "DescriptorTable",
    "Device",
    "Dim3",
    "Elem",
    "Event",
    "Eviction",
    "Explanation",
    "GeneralBarrier",
    "GlobalArray",
    "Graph",
    "GraphLaunch",
    "Grid",
    "Group",
    "HasAdd",
    "HasBits",
    "HasIncDec",
    "HasMinMax",
    "HasStore",
    "Idx",
    "Im2colDescriptor",
    "Im2colWideDescriptor",
    "Invalidated",
    "KernelInfo",
    "Kind",
    "Landed",
    "Launchable",
    "Leader",
    "ManagedBarrier",
    "ManagedBarriers",
    "MapParameters",
    "MmaBarrier",
    "Owned",
    "ParameterInfo",
    "Pipeline",
    "PipelineOf",
    "Pred",
    "PreparedLaunch",
    "Ready",
    "Recipe",
    "ReduceOp",
    "ReleasedTensorMap",
    "RestEviction",
    "Ring",
    "Roles",
    "Scalar",
    "ScalarValue",
    "SharedArray",
    "SharedArrays",
    "Slot",
    "StageAt",
    "State",
    "StoreRing",
    "Stream",
    "SupportsCudaArray",
    "SupportsCudaStream",
    "SupportsDLPack",
    "Swizzle32B",
    "Swizzle64B",
    "Swizzle128B",
    "Swizzle128BAtom32B",
    "Swizzle128BAtom32BFlip8B",
    "Swizzle128BAtom64B",
    "SwizzleNone",
    "SymIdx",
    "TensorMapDraft",
    "TensorMapSlot",
    "TmaBarrier",
    "TmaBarrierHandle",
    "TmaDescriptor",
    "Truth",
    "TxToken",
    "Uninit",
    "Value",
    "Vector",
    "Verdict",
    "Work",
    "__version__",
    "bf16",
    "bulk_g2s",
    "bulk_g2s_multicast",
    "bulk_prefetch",
    "bulk_reduce",
    "bulk_reduce_s2s",
    "bulk_s2g",
    "bulk_s2s",
    "cache",
    "copy",
    "e4m3",
    "e5m2",
    "errors",
    "f16",
    "f32",
    "f32_ftz",
    "f64",
    "gather_rows",
    "i32",
    "i64",
    "matmul",
    "maximum",
    "minimum",
    "order",
    "per_column",
    "per_row",
    "pipeline",
    "read_safetensors",
    "reduce",
    "reduce_into",
    "roles",
    "run_recipes",
    "tf32",
    "tf32_ftz",
    "transform",
    "u4x16_align8b",
    "u4x16_align16b",
    "u6x16_align16b",
    "u8",
    "u16",
    "u32",
    "u64",
    "validate",
    "value",
]


if not TYPE_CHECKING:  # a checker that saw it would take any misspelled name for an `object`

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            value: object = import_module(_MODULES[name])
        elif name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
        else:
            raise AttributeError(f"module 'oxidecopy' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
