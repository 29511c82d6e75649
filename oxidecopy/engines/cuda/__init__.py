"""The CUDA side. This version only looks for a GPU (`probe`); nothing outside this package imports `cuda.bindings`."""
