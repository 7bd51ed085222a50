"""A console on a thread with a free port, and a client of its API as the page uses it.

with RunningConsole(FakeWatcher(make_state())) as console:
    console.get("/api/topics")["items"]
    console.post("/api/topics", {"name": "orders"})
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import httpx

from barnabas.console.console_app import console_app
from barnabas.console.console_server import listen, server_of
from barnabas.console.console_settings import ConsoleSettings
from barnabas.console.login.session_routes import Logins
from barnabas.console.snapshots import StateSource
from barnabas.console.web.page_files import PageFiles

HOST = "127.0.0.1"
PATIENCE_S = 30.0


class RunningConsole:
    """One console, while the block runs."""

    def __init__(
        self,
        source: StateSource,
        *,
        logins: Logins | None = None,
        files: PageFiles | None = None,
        **settings: Any,
    ) -> None:
        given = {"bootstrap": "127.0.0.1:1", "read_only": False, **settings}
        self.settings = ConsoleSettings(**given)
        self._application = console_app(self.settings, source, logins=logins, files=files)
        self._ready = threading.Event()
        self._server = server_of(self._application, self._ready.set)
        self._socket = listen(HOST, 0)
        self.port: int = self._socket.getsockname()[1]
        self.origin = f"http://{HOST}:{self.port}"
        self.base = self.origin + self.settings.base_path
        self.http = httpx.Client(timeout=PATIENCE_S)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the console did not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)
        self._socket.close()

    def raw(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request as it is."""
        return self.http.request(method, self.base + path, **options)

    def get(self, path: str, status: int = 200, **parameters: Any) -> Any:
        """Return the JSON of a GET, and check its status."""
        answer = self.raw("GET", path, params=parameters or None)
        assert answer.status_code == status, answer.text
        return answer.json()

    def send(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a change as the page does, and check its status."""
        answer = self.raw(method, path, json=body, headers=self.headers())
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a POST as the page does."""
        return self.send("POST", path, body, status)

    def headers(self) -> dict[str, str]:
        """Return the headers of a change."""
        return {"Origin": self.origin, "X-CSRF-Token": self.get("/api/session")["csrf"]}

    @contextmanager
    def events(
        self, path: str, headers: dict[str, str] | None = None, **parameters: Any
    ) -> Iterator[Iterator["Event"]]:
        """Open a stream of events."""
        with self.http.stream(
            "GET", self.base + path, params=parameters, headers=headers
        ) as answer:
            if answer.status_code != httpx.codes.OK:
                answer.read()
                raise AssertionError(answer.text)
            yield read_events(answer)


class Event(dict[str, Any]):
    """The data of an event, with its name and id."""

    def __init__(self, name: str, data: Any, identity: str | None) -> None:
        super().__init__(data)
        self.name = name
        self.identity = identity


def read_events(answer: httpx.Response) -> Iterator[Event]:
    """Yield the events of an answer."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line.startswith(":"):
            continue
        if not line:
            if "data" in fields:
                yield Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
            fields = {}
            continue
        name, _, value = line.partition(": ")
        fields[name] = value
