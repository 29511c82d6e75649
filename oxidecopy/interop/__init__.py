"""The protocols by which libraries share memory, as data: DLPack and `__cuda_array_interface__`, both ways.

Nothing here knows a device: `host` asks for what a foreign object says of its memory, judges it, and borrows it.
"""
