"""The exceptions of reads and writes. Their messages say what to change."""


class OptionError(ValueError):
    """An option has an invalid name or value."""


class DataLossError(RuntimeError):
    """Records that were to be read are no longer there."""


class FetchError(RuntimeError):
    """A broker did not return the requested records within the timeout."""


class ReplayError(RuntimeError):
    """A batch cannot be written again, because something else was written under its number."""
