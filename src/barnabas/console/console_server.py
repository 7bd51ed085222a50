"""Runs the console: the watcher, and uvicorn with the application, until it is told to stop."""

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from barnabas.admin.admin_errors import AdminError
from barnabas.console.console_app import console_app
from barnabas.console.console_settings import ConsoleSettings
from barnabas.console.snapshots import StateSource
from barnabas.console.web.patient_http import PatientHttp

BACKLOG = 256
REQUESTS_AT_ONCE = 1_000
KEEP_ALIVE_S = 15
STOP_PATIENCE_S = 3
HEADER_BYTES_MAX = 32 << 10
PARENT_LOOK_S = 1.0
PR_SET_PDEATHSIG = 1


def run_console(
    settings: ConsoleSettings, source: StateSource, on_ready: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C; `on_ready` gets the URL once the port is open."""
    application = console_app(settings, source)
    listening = listen(settings.host, settings.port)
    url = address_url(settings, listening)
    for number in (signal.SIGTERM, signal.SIGINT):
        # The server handles them, and raises them again when it has stopped: then nothing is left.
        signal.signal(number, lambda *_: None)
    server_of(application, lambda: on_ready(url)).run(sockets=[listening])


def server_of(application: ASGIApp, on_ready: Callable[[], None]) -> uvicorn.Server:
    """Return the server of an application, with limits."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        loop="asyncio",
        http=PatientHttp,
        ws="none",
        limit_concurrency=REQUESTS_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_PATIENCE_S,
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        proxy_headers=False,
    )
    return _Server(config, on_ready)


class _Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise with what to do if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once (TCP_NODELAY).
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host.strip("[]"), port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or error
        raise AdminError(
            f"The web console cannot listen on {host}:{port}: {reason}; choose another address"
        ) from None
    return made


def address_url(settings: ConsoleSettings, listening: socket.socket) -> str:
    """Return the URL that users open."""
    if settings.public_url is not None:
        return settings.public_url
    port = listening.getsockname()[1]
    host = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
    return f"http://{host}:{port}{settings.base_path}/"


def die_with_parent() -> None:
    """Stop when the parent process ends, whatever ends it."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _watch_parent(parent: int) -> None:
    """Do the same where the kernel does not, or the parent ended before it was asked."""
    while os.getppid() == parent:
        threading.Event().wait(PARENT_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
