"""How reads and writes fail: sentences that say what to change."""


class OptionError(ValueError):
    """An option cannot be had as it is written."""


class DataLossError(RuntimeError):
    """Records that were to be read are no longer there."""


class FetchError(RuntimeError):
    """A broker would not give what was asked for, however long we tried."""


class ReplayError(RuntimeError):
    """A batch cannot be written again, because something else was written under its number."""
