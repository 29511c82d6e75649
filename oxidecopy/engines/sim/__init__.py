"""The CPU simulator: numpy, real shared addresses, the hardware's odd rules. It never imports the verifier."""

from oxidecopy.engines.sim.engine import SimEngine as SimEngine
from oxidecopy.engines.sim.explore import Exploration as Exploration
from oxidecopy.engines.sim.explore import explore as explore
from oxidecopy.engines.sim.memory import ForeignBuffer as ForeignBuffer
from oxidecopy.engines.sim.memory import SimBuffer as SimBuffer

__all__ = ["Exploration", "ForeignBuffer", "SimBuffer", "SimEngine", "explore"]
