"""The CUDA engine: driver, context, memory, streams, device code, launches. Nothing outside this package imports `cuda.bindings`."""
