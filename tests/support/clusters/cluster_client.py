"""The command line that all client processes of a cluster storm share."""

import argparse
import signal
import threading
from pathlib import Path


def client_parser() -> argparse.ArgumentParser:
    """Return a parser for where the client works and the file of its ledger or diary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    return parser


def end_on_sigterm(ending: threading.Event) -> None:
    """Set an event when the process gets SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
