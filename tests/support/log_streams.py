"""The log of a broker in the test's process, as a stream of JSON lines."""

import logging
from collections.abc import Iterator
from io import StringIO

from barnabas import logs


def logged() -> Iterator[StringIO]:
    """Write the log to a stream; use it as a fixture of any scope: `pytest.fixture(logged)`."""
    stream = StringIO()
    logs.configure(json=True, stream=stream)
    yield stream
    logging.getLogger().removeHandler(logs._forward)
