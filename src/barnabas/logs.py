"""Structured log lines: coloured on a terminal, plain into a file, JSON for a machine.

The words of an event never change with its facts, which are values of their own: so `event` is a
stable name that machines can look for. In JSON each line also says of which broker it is, once
`identify` has told. Lines of the same event are limited by rate (`log_limits.py`).

A logger costs nothing until it is used: `get` returns a proxy, and the first log line imports
structlog, with the defaults if `configure` was not called. The import takes 50 ms, of which 35 are
for `rich`, which structlog would only use to colour tracebacks. The broker writes plain tracebacks,
so structlog is imported without `rich`, in 15 ms.

No line is written for a request, so nothing here is tuned for speed beyond structlog's cache.
"""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO

from barnabas.log_limits import LogLimits
from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

LEVELS = ("debug", "info", "warning", "error", "critical")

Processor = Callable[[Any, str, MutableMapping[str, Any]], Any]


class Logger(Protocol):
    """What a part of the broker writes to: an event in words, and values by name."""

    def debug(self, event: str, **values: object) -> object:
        """Log a detail that helps to find a fault."""

    def info(self, event: str, **values: object) -> object:
        """Log something that an operator wants to find later."""

    def warning(self, event: str, **values: object) -> object:
        """Log something that needs attention if it persists."""

    def error(self, event: str, **values: object) -> object:
        """Log a failure."""

    def exception(self, event: str, **values: object) -> object:
        """Log a failure with the traceback of the current exception."""


class _LazyLogger:
    """A logger that creates its structlog logger when it is first used."""

    __slots__ = ("_bound", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._bound: Any = None

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - whatever structlog has
        if method.startswith("__"):
            raise AttributeError(method)
        if self._bound is None:
            _apply()
            self._bound = _structlog().get_logger().bind(logger=self._name)
        return getattr(self._bound, method)

    def forget(self) -> None:
        """Drop the structlog logger, so that the next line uses the new configuration."""
        self._bound = None


class _Sink:
    """Where lines go. A line that cannot be written is lost, without an error for the caller."""

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def write(self, text: str) -> None:
        """Write; ignore a full disk or a closed pipe."""
        with contextlib.suppress(OSError):
            self._target.write(text)

    def flush(self) -> None:
        """Flush likewise."""
        with contextlib.suppress(OSError):
            self._target.flush()


class _Forward(logging.Handler):
    """Writes the log records of libraries, such as asyncio's warnings, in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record of the standard library's as a line of ours."""
        level = record.levelname.lower()
        write = getattr(get(record.name), level if level in LEVELS else "warning")
        write(record.getMessage(), **({"exc_info": record.exc_info} if record.exc_info else {}))


_loggers: dict[str, _LazyLogger] = {}
_forward = _Forward(logging.WARNING)
_applied = False


_limits = LogLimits()


class _Identity(NamedTuple):
    """Of which broker the lines are."""

    node: int
    cluster: Callable[[], str]
    """Returns the id of the cluster; "" while it is unknown."""


_identity: _Identity | None = None


class _Look(NamedTuple):
    """How lines look and where they go; without a stream, to stderr."""

    json: bool = False
    level: str = "info"
    stream: TextIO | None = None


_look = _Look()


def get(name: str) -> Logger:
    """Return the logger of a part of the broker, the same one for the same name."""
    return _loggers.setdefault(name, _LazyLogger(name))


def configure(*, json: bool = False, level: str = "info", stream: TextIO | None = None) -> None:
    """Set how lines look and where they go; `stream` is stderr by default."""
    global _look, _applied
    if level.lower() not in LEVELS:
        raise ConfigError(f"There is no log level {level!r}; write one of {', '.join(LEVELS)}.")
    _look, _applied = _Look(json, level, stream), False
    for logger in _loggers.values():
        logger.forget()
    logging.getLogger().addHandler(_forward)


def identify(node: int, cluster: Callable[[], str]) -> None:
    """Have JSON lines name the broker and its cluster."""
    global _identity  # noqa: PLW0603 - a process has one log
    _identity = _Identity(node, cluster)


def limit_lines(lines_max: int) -> None:
    """Write at most so many lines of an event in ten seconds; 0 means all of them."""
    _limits.lines_max = lines_max


def tell_left_out() -> None:
    """Write how many lines were left out, of events that have not come again since."""
    for event, count in _limits.take_over().items():
        get("barnabas").warning("lines were left out of the log", of=event, left_out=count)


def _limited(_: object, method: str, values: MutableMapping[str, Any]) -> Any:  # noqa: ANN401
    """Drop a line of an event that was logged often; else say how many were dropped before."""
    if method == "debug":
        return values
    left_out = _limits.admit(str(values.get("event", "")))
    if left_out is None:
        raise _structlog().DropEvent
    return {**values, "left_out": left_out} if left_out else values


def _identified(_: object, __: str, values: MutableMapping[str, Any]) -> Any:  # noqa: ANN401
    if _identity is not None:
        values["node"] = _identity.node
        cluster = _identity.cluster()
        if cluster:
            values["cluster"] = cluster
    return values


def _apply() -> None:
    """Configure structlog before the first line is written."""
    global _applied  # noqa: PLW0603 - see above
    if _applied:
        return
    _applied = True
    json, level, stream = _look
    structlog = _structlog()
    target = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_common(structlog), *_rendering(structlog, target, json=json)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(_Sink(target)),
        cache_logger_on_first_use=True,
    )


def _common(structlog: "ModuleType") -> list[Processor]:
    return [
        _limited,
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _rendering(structlog: "ModuleType", target: TextIO, *, json: bool) -> list[Processor]:
    if json:
        return [
            _identified,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    return [
        structlog.dev.ConsoleRenderer(
            colors=target.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]


def _structlog() -> "ModuleType":
    with _without_rich():
        import structlog  # noqa: PLC0415 - see the module's docstring
    return structlog


@contextmanager
def _without_rich() -> Iterator[None]:
    """Make `import rich` fail within this context, unless it is already imported."""
    hidden = "rich" not in sys.modules and "structlog" not in sys.modules
    if hidden:
        sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden:
            del sys.modules["rich"]
