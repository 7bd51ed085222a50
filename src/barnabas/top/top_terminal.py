"""The terminal of `barnabas top`: keys without Enter, and everything as it was afterwards.

Keys come as bytes; escape sequences may arrive in pieces over a slow line, so a lone Esc is only
taken for the key after a moment without more bytes.
"""

import contextlib
import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from barnabas.top.top_view import Key

ESCAPE = b"\x1b"
ESCAPE_PATIENCE_S = 0.05
READ_BYTES = 1024
ENDING = (signal.SIGTERM, signal.SIGHUP)

KEYS = {
    b"\x1b[A": Key.UP,
    b"\x1bOA": Key.UP,
    b"k": Key.UP,
    b"\x1b[B": Key.DOWN,
    b"\x1bOB": Key.DOWN,
    b"j": Key.DOWN,
    b"\x1b[5~": Key.PAGE_UP,
    b"\x1b[6~": Key.PAGE_DOWN,
    b"\x1b[H": Key.HOME,
    b"\x1bOH": Key.HOME,
    b"\x1b[1~": Key.HOME,
    b"\x1b[F": Key.END,
    b"\x1bOF": Key.END,
    b"\x1b[4~": Key.END,
    b"\t": Key.NEXT,
    b"\x1b[Z": Key.BEFORE,
    b"\r": Key.OPEN,
    b"\n": Key.OPEN,
    b"\x1b[C": Key.OPEN,
    b"\x1bOC": Key.OPEN,
    ESCAPE: Key.BACK,
    b"\x7f": Key.BACK,
    b"\x08": Key.BACK,
    b"\x1b[D": Key.BACK,
    b"\x1bOD": Key.BACK,
    b"s": Key.SORT,
    b"p": Key.PAUSE,
    b" ": Key.PAUSE,
    b"?": Key.HELP,
    b"h": Key.HELP,
    b"q": Key.QUIT,
    b"Q": Key.QUIT,
    b"\x03": Key.QUIT,
    b"\x04": Key.QUIT,
}


def keys_in(content: bytes) -> list[Key]:
    """Return the keys in what was typed; what is no key is left out."""
    found = []
    while content:
        size = _length(content)
        key = KEYS.get(content[:size])
        if key is not None:
            found.append(key)
        content = content[size:]
    return found


def _length(content: bytes) -> int:
    """Return how many bytes the first key has."""
    if content[:1] != ESCAPE or content[1:2] not in (b"[", b"O"):
        return 1
    for place, byte in enumerate(content[2:], 3):
        if 0x40 <= byte <= 0x7E:
            return place
    return len(content)


class Keyboard:
    """Waits for keys, or for a call of `wake` from another thread or a signal."""

    def __init__(self, descriptor: int | None) -> None:
        """Take the descriptor of the terminal; None if there are no keys to read."""
        self._descriptor = descriptor
        self._woken, self._waker = os.pipe()
        self.is_over = False
        """Whether a signal or the end of the terminal asks to end."""
        for end in (self._woken, self._waker):
            os.set_blocking(end, False)

    def close(self) -> None:
        """Close what `wake` uses."""
        for end in (self._woken, self._waker):
            os.close(end)

    def wake(self) -> None:
        """Let `wait` return."""
        with contextlib.suppress(BlockingIOError):  # it is full: `wait` will return
            os.write(self._waker, b"\0")

    def end(self) -> None:
        """Ask to end."""
        self.is_over = True
        self.wake()

    def wait(self, timeout_s: float) -> list[Key]:
        """Return the keys that were pressed; none if it was woken or the time is over."""
        watched = [self._woken, *([] if self._descriptor is None else [self._descriptor])]
        ready, _, _ = select.select(watched, [], [], timeout_s)
        if self._woken in ready:
            os.read(self._woken, READ_BYTES)
        if self._descriptor is None or self._descriptor not in ready:
            return []
        content = self._read(self._descriptor)
        if (
            content.endswith(ESCAPE)
            and select.select([self._descriptor], [], [], ESCAPE_PATIENCE_S)[0]
        ):
            content += self._read(self._descriptor)
        return keys_in(content)

    def _read(self, descriptor: int) -> bytes:
        try:
            content = os.read(descriptor, READ_BYTES)
        except OSError:  # the terminal is gone
            content = b""
        if not content:
            self.end()
        return content


def _has_more(descriptor: int) -> bool:
    ready, _, _ = select.select([descriptor], [], [], ESCAPE_PATIENCE_S)
    return bool(ready)


@contextmanager
def raw_keys(descriptor: int) -> Iterator[Keyboard]:
    """Read keys without echo and Enter; then restore the terminal, also after an error."""
    before = termios.tcgetattr(descriptor)
    keyboard = Keyboard(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        settings = termios.tcgetattr(descriptor)
        settings[6][termios.VSUSP] = b"\0"  # Ctrl-Z would leave the terminal as it is here
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        yield keyboard
    finally:
        with contextlib.suppress(termios.error):  # it is gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        keyboard.close()


@contextmanager
def signals_of(keyboard: Keyboard) -> Iterator[None]:
    """Draw anew when the terminal changes its size; end on SIGTERM, SIGHUP and SIGINT."""

    def end(number: int, at: FrameType | None) -> None:
        del number, at
        keyboard.end()

    def wake(number: int, at: FrameType | None) -> None:
        del number, at
        keyboard.wake()

    handlers: dict[int, Callable[[int, FrameType | None], None]] = dict.fromkeys(
        (*ENDING, signal.SIGINT), end
    )
    handlers[signal.SIGWINCH] = wake
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
