"""The tables of a lake: their files, their columns, who writes them, how they are read."""
