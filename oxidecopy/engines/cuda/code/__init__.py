"""Device code: a verified program and its launch shape as records of the interpreter."""

from oxidecopy.engines.cuda.code.encode import encode as encode
from oxidecopy.engines.cuda.code.encode import encode_program as encode_program
from oxidecopy.engines.cuda.code.image import AgentNote as AgentNote
from oxidecopy.engines.cuda.code.image import Image as Image
from oxidecopy.engines.cuda.code.image import LoopNote as LoopNote
from oxidecopy.engines.cuda.code.image import ScalarWord as ScalarWord
from oxidecopy.engines.cuda.code.image import Warp as Warp
from oxidecopy.engines.cuda.code.image import Where as Where

__all__ = ["AgentNote", "Image", "LoopNote", "ScalarWord", "Warp", "Where", "encode", "encode_program"]
