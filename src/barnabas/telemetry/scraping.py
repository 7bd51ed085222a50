"""Fetches dcgm-exporter's pages, round after round; a host that is down holds up no other."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http.client import HTTPException
from itertools import count
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from barnabas.telemetry.exposition import parse_exposition
from barnabas.telemetry.messages import Tick
from barnabas.telemetry.pacing import NAP_S, Clock
from barnabas.telemetry.readings import Reading, Tally

SCRAPE_TIMEOUT_S = 10.0
THREADS_MAX = 32
PAGE_BYTES_MAX = 64 << 20


class EndpointError(ValueError):
    """An address that cannot be scraped; the text says how to write one."""


@dataclass(frozen=True)
class Outage:
    """An exporter that did not answer."""

    url: str
    reason: str
    is_first: bool = True
    """Whether it answered the time before."""


@dataclass(frozen=True)
class Recovery:
    """An exporter that answers again."""

    url: str


@dataclass(frozen=True)
class Page:
    """What an exporter answered, and when."""

    url: str
    text: str
    at_ms: int


def endpoint(text: str) -> str:
    """Complete an address: HOST, HOST:PORT and URLs without a path are accepted."""
    parts = urlsplit(text if "//" in text else f"http://{text}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise EndpointError(f"--dcgm {text!r} is no address; write http://HOST:9400/metrics")
    port = parts.netloc if parts.port or parts.scheme == "https" else f"{parts.netloc}:9400"
    path = parts.path if parts.path.strip("/") else "/metrics"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{port}{path}{query}"


def fetch(url: str, timeout_s: float) -> Page | Outage:
    """Get one page; whatever goes wrong is a value."""
    try:
        with urlopen(url, timeout=timeout_s) as answer:  # noqa: S310 - `endpoint` saw to http
            text = answer.read(PAGE_BYTES_MAX).decode(errors="replace")
    except HTTPError as error:
        error.close()
        return Outage(url, f"answered {error.code} {error.reason}")
    except (OSError, ValueError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        return Outage(url, str(reason) or type(error).__name__)
    return Page(url, text, time.time_ns() // 1_000_000)


def scrape(
    urls: Sequence[str],
    *,
    interval_s: float,
    rounds: int | None,
    clock: Clock,
    tally: Tally,
    while_waiting: Callable[[], None] = lambda: None,
) -> Iterator[Reading | Outage | Recovery | Tick]:
    """Scrape all exporters at once, every `interval_s`, for ever or a number of rounds.

    Where none answers, a tick takes the place of the samples: time goes on, and the pipeline
    must get to know that everything is missing.
    """
    began_s = clock.now_s()
    down: set[str] = set()
    timeout_s = min(SCRAPE_TIMEOUT_S, max(interval_s, 1.0))
    with ThreadPoolExecutor(min(len(urls), THREADS_MAX)) as pool:
        for number in range(rounds) if rounds is not None else count():
            _wait(began_s + number * interval_s, clock, while_waiting)
            answers = list(pool.map(lambda url: fetch(url, timeout_s), urls))
            for answer in answers:
                yield from _changes(answer, down)
                yield from _readings(answer, tally)
            if all(isinstance(answer, Outage) for answer in answers):
                yield Tick(timestamp_ms=time.time_ns() // 1_000_000, hostname="")


def _changes(answer: Page | Outage, down: set[str]) -> Iterator[Outage | Recovery]:
    """Say who is down and who is back, and remember it."""
    if isinstance(answer, Outage):
        yield replace(answer, is_first=answer.url not in down)
        down.add(answer.url)
    elif answer.url in down:
        down.discard(answer.url)
        yield Recovery(answer.url)


def _readings(answer: Page | Outage, tally: Tally) -> Iterator[Reading]:
    if isinstance(answer, Outage):
        return
    hostname = urlsplit(answer.url).hostname or ""
    yield from parse_exposition(
        answer.text, at_ms=answer.at_ms, where=answer.url, default_hostname=hostname, tally=tally
    )


def _wait(until_s: float, clock: Clock, while_waiting: Callable[[], None]) -> None:
    while (left_s := until_s - clock.now_s()) > 0:
        while_waiting()
        clock.sleep(min(left_s, NAP_S))
