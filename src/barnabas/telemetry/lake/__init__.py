"""The lake: its tables, their files and columns, and readers of them."""
