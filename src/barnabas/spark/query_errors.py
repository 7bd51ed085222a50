"""The exceptions of reads and writes. Their messages say what to change."""


class OptionError(ValueError):
    """An option has an invalid name or value."""


class DataLossError(RuntimeError):
    """Records that the query should read no longer exist."""


class FetchError(RuntimeError):
    """A broker did not return the requested records within the timeout."""


class ReplayError(RuntimeError):
    """A batch cannot be written again, because other rows were written under its number."""
