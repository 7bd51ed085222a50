"""The in-memory disk of the simulation, which can lose power."""

from barnabas.sim.memory_disk import Content, Folder, MemoryDisk, MemoryFile

__all__ = ["Content", "Folder", "MemoryDisk", "MemoryFile"]
