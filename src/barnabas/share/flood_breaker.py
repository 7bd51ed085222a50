"""Pauses the delivery of a partition when very many of its records become dead letters.

A consumer with a bug fails every record, and would drain the whole topic into the dead-letter topic
within minutes. The rule is simple: once a minute has had so many dead letters as the group allows,
nothing is delivered until that minute is over. So a topic is drained at a bounded rate at most, and
the pause ends by itself; the notice about it tells the operator.
"""

WINDOW_MS = 60_000


class FloodBreaker:
    """Counts the dead letters of one share partition in the current minute."""

    def __init__(self) -> None:
        self._began_ms: int | None = None
        self._count_before = self._last_count = 0

    def pause_ms(self, count: int, limit: int, now_ms: int) -> int:
        """Return for how long to deliver nothing; 0 if delivery goes on.

        The count is that of all dead letters so far.
        """
        if self._began_ms is None or now_ms - self._began_ms >= WINDOW_MS:
            self._began_ms, self._count_before = now_ms, self._last_count
        self._last_count = count
        if limit <= 0 or count - self._count_before < limit:
            return 0
        return self._began_ms + WINDOW_MS - now_ms
