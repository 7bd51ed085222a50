"""Run a broker inside this process, for tests and notebooks.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is the real broker, on a thread of its own, with a free port. By default its data is in a
temporary directory that is removed with it.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas import config
from barnabas.app import BrokerProcess, FirstAdmin, new_event_loop
from barnabas.model.settings import Settings

START_PATIENCE_S = 60


class Broker:
    """One broker, from `start` to `stop`; after another `start` it has the same data."""

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        settings: Mapping[str, object] | None = None,
        first_admin: tuple[str, str] | None = None,
    ) -> None:
        """Take a directory and settings by their dotted names: {"storage.flush": "interval"}.

        Listeners are settings, too: {"listeners.SECURE.listen": "127.0.0.1:0", ...}. `first_admin`
        is the name and the password of a user that a broker without users gets.
        """
        self._first_admin = None if first_admin is None else FirstAdmin(*first_admin)
        self._temporary = data is None
        self.data = Path(tempfile.mkdtemp(prefix="barnabas-")) if data is None else Path(data)
        given = dict(settings or {})
        has_listeners = any(name.startswith("listeners.") for name in given)
        address = {} if has_listeners else {"broker.host": "127.0.0.1", "broker.port": 0}
        self._flags = {**address, **given, "broker.data_dir": str(self.data)}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process: BrokerProcess | None = None
        self.bootstrap = ""
        self.listeners: dict[str, tuple[str, int]] = {}
        """The addresses for clients, by the name of the listener."""

    @property
    def settings(self) -> Settings:
        """The settings of the broker."""
        return config.load(None, {}, self._flags)

    @property
    def peer_address(self) -> tuple[str, int] | None:
        """The address for other brokers."""
        return None if self._process is None else self._process.peer_address

    @property
    def http_address(self) -> tuple[str, int] | None:
        """The address of the HTTP listener with metrics and health, where there is one."""
        if self._process is None or self._process.operators is None:
            return None
        return self._process.operators.address

    def start(self) -> Self:
        """Return once clients can connect."""
        assert self._thread is None, "this broker is running"
        settings, loop = self.settings, new_event_loop()
        try:
            self._process = BrokerProcess(settings, loop, first_admin=self._first_admin)
        except BaseException:
            loop.close()
            raise
        self._loop = loop
        self._thread = threading.Thread(target=loop.run_forever, name="barnabas", daemon=True)
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(self._process.start(), loop)
        try:
            host, port = started.result(START_PATIENCE_S)
        except BaseException:  # it failed, took too long, or the program is interrupted
            started.cancel()
            self._end_loop()
            raise
        self.bootstrap = f"{host}:{port}"
        self.listeners = dict(self._process.listeners)
        return self

    def stop(self) -> None:
        """Stop cleanly; do nothing if the broker does not run."""
        if self._thread is None or self._loop is None or self._process is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._process.stop(), self._loop).result()
        finally:
            self._end_loop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._remove_temporary()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)

    def _end_loop(self) -> None:
        assert self._loop is not None
        assert self._thread is not None
        asyncio.run_coroutine_threadsafe(_others_done(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = self._process = None


async def _others_done() -> None:
    """Wait for all other tasks of the loop: a cancelled start must release its resources."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
