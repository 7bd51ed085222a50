"""Disks in memory, disks that lose power, and simple models of a log."""
