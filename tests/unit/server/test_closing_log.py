"""The log says why connections were closed, and strangers cannot fill it."""

import json
from io import StringIO

from barnabas.server.closing_log import LINES_A_SECOND, ClosingLog


def test_only_so_many_lines_are_written_in_a_second(log: StringIO) -> None:
    now_ms = 5_000
    closing = ClosingLog(lambda: now_ms)
    for number in range(LINES_A_SECOND + 30):
        closing.write("closed a connection", "10.0.0.9", problem=str(number))
    now_ms += 999
    closing.write("closed a connection", "10.0.0.9")
    assert len(log.getvalue().splitlines()) == LINES_A_SECOND
    now_ms += 1
    closing.write("closed a connection", "10.0.0.9", problem="the last")
    closing.write("closed a connection", "10.0.0.9", problem="one more")
    last, after = map(json.loads, log.getvalue().splitlines()[LINES_A_SECOND:])
    assert (last["client"], last["problem"], last["unlogged"]) == ("10.0.0.9", "the last", 31)
    assert "unlogged" not in after
