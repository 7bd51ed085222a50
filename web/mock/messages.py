"""Messages of the made-up cluster: a search that ends, and a live tail."""

import base64
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from web.mock.answers import Params, ProblemError, content, now_ms
from web.mock.cluster import HOSTILE, Cluster, Row

HELD = 5_000
"""So many messages of each partition can be read."""
TAIL_PAUSE_S = 0.25
COUNTRIES = ("DE", "FR", "JP", "BR", "US", "KE")


def message(topic: str, partition: int, offset: int, end: int, *, hostile: bool = False) -> Row:
    """Return one message, the same at each call."""
    chance = random.Random(f"{topic} {partition} {offset}")
    at_ms = now_ms() // 60_000 * 60_000 - (end - offset) * 1_733 - chance.randrange(900)
    order: dict[str, Any] = {
        "order_id": 10_000_000 + offset * 7 + partition,
        "customer": f"c-{chance.randrange(90_000):05d}",
        "country": chance.choice(COUNTRIES),
        "total": round(chance.lognormvariate(3.6, 0.9), 2),
        "currency": "EUR",
        "items": [
            {"sku": f"S{chance.randrange(9_999):04d}", "count": chance.randrange(1, 5)}
            for _ in range(2)
        ],
        "express": chance.random() < 0.2,
        "note": None,
    }
    if hostile:
        order["note"] = HOSTILE[offset % len(HOSTILE)]
    key: str | None = f"c-{order['customer'][2:]}"
    value: str | None = json.dumps(order)
    if offset % 17 == 0:
        value = None
    elif offset % 11 == 0:
        value = (
            f"{at_ms} WARN checkout: payment of order {order['order_id']} is late, will try again"
        )
    if hostile:
        key = HOSTILE[offset % len(HOSTILE)]
    found: Row = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp_ms": at_ms,
        "timestamp_type": "create_time",
        "key": content(key),
        "value": content(value),
        "headers": [
            {
                "name": "traceparent",
                "value": content(
                    f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-01"
                ),
            },
            {"name": HOSTILE[0] if hostile else "source", "value": content("checkout-7")},
        ],
        "leader_epoch": 14,
    }
    if offset % 13 == 0:
        found["value"] = {
            "encoding": "hex",
            "text": "00 00 00 00 07 8f 1c a2 e4 55",
            "size_bytes": 10,
            "truncated": False,
        }
    found["size_bytes"] = 80 + found["value"]["size_bytes"]
    return found


class Messages:
    """Reads messages as events."""

    def __init__(self, cluster: Cluster, *, hostile: bool) -> None:
        self._cluster = cluster
        self._hostile = hostile

    def _ends(self, params: Params) -> dict[int, int]:
        topic = params.get("topic", "")
        if topic not in self._cluster.topics:
            raise ProblemError(404, f"There is no topic {topic[:60]}", "UNKNOWN_TOPIC_OR_PARTITION")
        wanted = _numbers(params.get("partitions", ""))
        rows = self._cluster.partitions(topic)
        return {row["number"]: row["end"] for row in rows if not wanted or row["number"] in wanted}

    def search(self, params: Params) -> Iterator[tuple[str, Row]]:
        """Yield the events of a search."""
        ends = self._ends(params)
        first, limit = params.get("from") or "beginning", int(params.get("limit") or 50)
        topic = params["topic"]
        starts = {number: _start(first, number, end) for number, end in ends.items()}
        scanned = matched = 0
        for number, offset in _in_turns(starts, ends):
            if ends[number] <= 1_000 * number:
                continue
            scanned += 1
            found = message(topic, number, offset, ends[number], hostile=self._hostile)
            starts[number] = offset + 1
            if not _matches(found, params):
                continue
            matched += 1
            yield "record", found
            if matched >= limit:
                break
        yield "progress", {"scanned": scanned, "matched": matched, "errors": 0, "positions": {}}
        is_all = matched < limit
        rest = ",".join(f"{number}:{offset}" for number, offset in starts.items())
        yield "done", {"reason": "end" if is_all else "limit", "next": rest}

    def tail(self, params: Params) -> Iterator[tuple[str, Row]]:
        """Yield messages as if they were written now, without an end."""
        ends = self._ends(params)
        chance, passed = random.Random(1), 0
        while True:
            for _ in range(chance.randrange(4)):
                number = chance.choice(sorted(ends))
                found = message(
                    params["topic"], number, ends[number], ends[number], hostile=self._hostile
                )
                ends[number] += 1
                if _matches(found, params):
                    yield "record", {**found, "timestamp_ms": now_ms()}
            passed += 1
            if passed % 40 == 0:
                yield "skipped", {"records": 120}
            time.sleep(TAIL_PAUSE_S)

    def one(self, params: Params) -> Row:
        """Return one message in full."""
        ends = self._ends({"topic": params.get("topic", "")})
        number, offset = int(params.get("partition", 0)), int(params.get("offset", 0))
        if number not in ends or offset > ends[number] + HELD:
            raise ProblemError(
                404, f"{params.get('topic')}-{number} has no record at offset {offset}", "not_found"
            )
        found = message(params["topic"], number, offset, ends[number], hostile=self._hostile)
        for part in (found["key"], found["value"], *(each["value"] for each in found["headers"])):
            raw = (part["text"] or "").encode()
            part["bytes_base64"] = None if part["text"] is None else base64.b64encode(raw).decode()
            if params.get("view") == "hex" and part["text"] is not None:
                part |= {"encoding": "hex", "text": raw.hex(" ")}
        return found


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _start(first: str, number: int, end: int) -> int:
    low = max(1_000 * number, end - HELD)
    if ":" in first:
        positions = dict(part.split(":") for part in first.split(","))
        return int(positions.get(str(number), end))
    if first.startswith("-") and first[1:].isdigit():
        return max(low, end - int(first[1:]))
    if first.isdigit():
        return max(low, int(first))
    return max(low, end - 400) if first.startswith("-") else end if first == "end" else low


def _in_turns(starts: dict[int, int], ends: dict[int, int]) -> Iterator[tuple[int, int]]:
    first = dict(starts)
    for step in range(max((ends[number] - at for number, at in first.items()), default=0)):
        for number, at in first.items():
            if at + step < ends[number]:
                yield number, at + step


def _matches(found: Row, params: Params) -> bool:
    everything = json.dumps(found, ensure_ascii=False).casefold()
    tests = (
        params.get("text", "").casefold() in everything,
        params.get("key", "") in (found["key"]["text"] or ""),
        params.get("value", "") in (found["value"]["text"] or ""),
        not params.get("header")
        or params["header"].partition("=")[0] in {each["name"] for each in found["headers"]},
    )
    return all(tests)
