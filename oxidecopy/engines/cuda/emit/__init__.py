"""Verified programs as readable CUDA C++: to paste into a kernel of one's own, and to measure and check the engine against."""

from oxidecopy.engines.cuda.emit.parameters import Parameter
from oxidecopy.engines.cuda.emit.source import Emitted, emitted

__all__ = ["Emitted", "Parameter", "emitted"]
