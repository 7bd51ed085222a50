"""The command line, with one sub-package or module per command group."""
