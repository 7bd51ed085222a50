"""The disk in memory that can lose power; it lives with the simulation, which is built on it."""

from barnabas.sim.memory_disk import Content, Folder, MemoryDisk, MemoryFile

__all__ = ["Content", "Folder", "MemoryDisk", "MemoryFile"]
