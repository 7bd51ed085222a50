"""Barnabas: a message queue in Python that any Kafka client can use unchanged."""

from typing import TYPE_CHECKING

from barnabas.model.version import __version__

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
__all__ = ["Broker", "__version__"]


def __getattr__(name: str) -> object:
    """Import `Broker` when it is first asked for: `import barnabas` stays light."""
    if name == "Broker":
        from barnabas.testing.broker import Broker  # noqa: PLC0415

        return Broker
    raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
