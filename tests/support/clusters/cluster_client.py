"""The command line that all client processes of a cluster storm share."""

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Protocol


def client_parser() -> argparse.ArgumentParser:
    """Return a parser for the client's target and the file of its ledger or diary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--security", type=Path, help="a JSON file with librdkafka's properties")
    return parser


def connection_of(options: argparse.Namespace) -> dict[str, object]:
    """Return the properties with which a client connects: addresses, TLS and login."""
    secure = {} if options.security is None else json.loads(options.security.read_text())
    return {"bootstrap.servers": options.bootstrap, **secure}


class Client(Protocol):
    """A client that works until its event is set."""

    ending: threading.Event

    def run(self) -> None:
        """Work until the event is set."""


class Closable(Protocol):
    """A ledger or a diary."""

    def close(self) -> None:
        """Write the rest and close the file."""


def run_until_sigterm(client: Client, records: Closable) -> None:
    """Run a client until the process gets SIGTERM or the client ends; then close its records."""
    signal.signal(signal.SIGTERM, lambda *_: client.ending.set())
    client.run()
    records.close()


def exit_code(problem: str, failure: str | None) -> int:
    """Return 1 after printing a failure, 0 if there is none."""
    if failure:
        sys.stderr.write(f"{problem}: {failure}\n")
    return 1 if failure else 0
