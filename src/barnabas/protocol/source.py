"""A builder of Python source code and of the constants that the code uses."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """The lines of one function, and the names that they use."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = dict(names)
        self._lines: list[str] = []
        self._depth = 0
        self._serial = 0

    def line(self, text: str) -> None:
        """Add a line at the current indentation."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that ends in a colon, and indent the lines added inside."""
        self.line(head + ":")
        self._depth += 1
        start = len(self._lines)
        yield
        if len(self._lines) == start:
            self.line("pass")
        self._depth -= 1

    def constant(self, value: object, prefix: str = "C") -> str:
        """Return a name for a value."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def struct_method(self, letters: str, method: str) -> str:
        """Return a name for `pack` or `unpack_from` of a big-endian struct."""
        name = f"{method}_{letters}".replace("?", "t")
        if name not in self.names:
            self.names[name] = getattr(struct.Struct(">" + letters), method)
        return name

    def fresh(self, prefix: str) -> str:
        """Return a name that was not used before."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, title: str) -> Any:  # noqa: ANN401 - the caller knows
        """Run the source and return a function from it."""
        code = compile(self.text, f"<{title}>", "exec")
        exec(code, self.names)  # noqa: S102 - the text is made here from our own tables
        return self.names[function]
