"""Work that is too much for one event, done piece by piece with other events between.

The work is a generator: it yields how much it has done since the last time, in units of its own,
and returns its result.
"""

from collections.abc import Generator
from typing import TypeVar

from barnabas.model.pending import Pending
from barnabas.model.timers import Timers

T = TypeVar("T")

Work = Generator[int, None, T]


def in_pieces(timers: Timers, work: Work[T], piece: int) -> Pending[T]:
    """Do some work, about `piece` units of it in each event; the first piece is done at once.

    The work stops where the client that asked for the result goes away.
    """
    answer: Pending[T] = Pending()

    def go_on() -> None:
        if answer.done:
            work.close()
            return
        done = 0
        try:
            while done < piece:
                done += next(work)
        except StopIteration as end:
            answer.complete(end.value)
        except Exception as error:  # noqa: BLE001 - told to the client that asked
            answer.fail(error)
        else:
            timers.after(0, go_on)

    go_on()
    return answer
