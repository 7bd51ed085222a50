"""`/api/brokers`, single brokers with their configs, and open transactions."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.cluster_overview import UP, Broker, Quorum
from barnabas.admin.topic_requests import BROKER, describe_configs
from barnabas.admin.transaction_admin import ENDING, ONGOING, Transaction, Transactions
from barnabas.console.cluster_access import open_wire
from barnabas.console.console_endpoints import Asked, ConsoleParts, get, live
from barnabas.console.state.broker_rows import NO_FIGURES, broker_row, broker_rows
from barnabas.console.state.restart_risks import restart_risks
from barnabas.console.state.series_json import series_json
from barnabas.console.web.json_answers import finite
from barnabas.console.web.list_queries import list_query, sort_rows
from barnabas.console.web.problems import not_found
from barnabas.monitor.states import BrokerFigures
from barnabas.wire.wire_failures import LinkError

LOOK_TIMEOUT_S = 5.0
TRANSACTIONS_MAX = 1_000
SERIES = ("records_per_s", "bytes_in_per_s", "bytes_out_per_s", "produce_p99_s", "loop_busy_ratio")
SLOW_FIELDS = {
    "at_ms": "time_ms",
    "api": "api",
    "client_id": "client_id",
    "host": "client",
    "took_ms": "total_ms",
}
SLOW_PARTS = {
    "loop": "queue_ms",
    "handler": "handler_ms",
    "disk": "disk_ms",
    "peers": "peers_ms",
    "sending": "sending_ms",
}
"""Our names of a slow request's facts, and those at the broker's /debug/slow."""


def broker_routes(parts: ConsoleParts) -> list[Route]:
    """Return the routes of brokers."""

    def listed(asked: Asked) -> object:
        return parts.page(asked, "brokers", broker_rows, "address")

    def one(asked: Asked) -> object:
        state = parts.state(asked)
        number = asked.name()
        found = next((each for each in state.overview.brokers if str(each.id) == number), None)
        if found is None:
            there = ", ".join(str(each.id) for each in state.overview.brokers)
            raise not_found(f"There is no broker {number[:40]}; the cluster has {there}")
        risks = restart_risks(state, found.id)
        figures = state.figures.get(found.id, NO_FIGURES)
        held = {
            (topic.name, each.number)
            for topic in state.topics.values()
            for each in topic.partitions
            if found.id in each.replicas
        }
        under = held.intersection(state.overview.partitions.under_replicated)
        configs, trouble = _configs(parts, asked, found)
        return {
            **broker_row(state, found),
            "taken_ms": state.taken_ms,
            "partitions": {
                "leaders": found.leaders,
                "replicas": found.replicas,
                "under_replicated": len(under),
            },
            "quorum": quorum_role(state.overview.quorum, found.id),
            "slow_requests": slow_requests(figures),
            "restart_safe": {"safe": not risks, "reasons": risks},
            "configs": configs,
            "configs_failure": trouble,
            "history": series_json(parts.snapshots.source.broker_series(found.id), *SERIES),
        }

    def transactions(asked: Asked) -> object:
        with open_wire(parts.settings, asked.session) as wire:
            found = Transactions(wire)
            states = [ONGOING, *sorted(ENDING)]
            names = [each.transactional_id for each in found.all(states)]
            described = [found.describe(name) for name in names[:TRANSACTIONS_MAX]]
        now_ms = time.time_ns() // 1_000_000
        # Some end between the two questions.
        still_open = [each for each in described if each is not None and each.started_ms]
        rows = [transaction_row(each, now_ms) for each in still_open]
        query = list_query(asked.query)
        wanted = [row for row in rows if query.search in row["transactional_id"]]
        items = sort_rows(wanted, query.sort)[query.offset : query.offset + query.limit]
        return {"total": len(wanted), "items": items, "taken_ms": now_ms}

    return [
        get(parts, "/api/brokers", listed),
        live(parts, "/api/brokers/{name}", one),
        live(parts, "/api/transactions", transactions),
    ]


def quorum_role(quorum: Quorum | None, broker: int) -> dict[str, Any]:
    """Return what a broker does in the metadata quorum."""
    members = () if quorum is None else (*quorum.voters, *quorum.observers)
    found = next((each for each in members if each.id == broker), None)
    if quorum is None or found is None:
        return {"role": None, "lag": None, "last_contact_ms": None}
    is_voter = any(each.id == broker for each in quorum.voters)
    role = "leader" if quorum.leader == broker else "voter" if is_voter else "observer"
    return {"role": role, "lag": found.lag, "last_contact_ms": found.last_contact_ms}


def slow_requests(figures: BrokerFigures) -> list[dict[str, Any]] | None:
    """Return the slow requests of a broker; None if they are unknown."""
    found = figures.slow_requests
    return None if found is None else [slow_request(each) for each in found]


def slow_request(found: Mapping[str, object]) -> dict[str, Any]:
    """Return one slow request as the API lists it, whatever the broker left out."""
    sizes = [found.get(name) for name in ("bytes_in", "bytes_out")]
    return {
        **{name: finite(found.get(theirs)) for name, theirs in SLOW_FIELDS.items()},
        "bytes": sum(each for each in sizes if isinstance(each, int)),
        "parts": {name: finite(found.get(theirs)) for name, theirs in SLOW_PARTS.items()},
    }


def transaction_row(found: Transaction, now_ms: int) -> dict[str, Any]:
    """Return the row of an open transaction; one past its timeout hangs."""
    age_ms = None if found.started_ms is None else now_ms - found.started_ms
    return {
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "state": found.state,
        "topics": sorted({topic for topic, _ in found.partitions}),
        "since_ms": found.started_ms,
        "hanging": age_ms is not None and age_ms > found.timeout_ms,
    }


def _configs(
    parts: ConsoleParts, asked: Asked, broker: Broker
) -> tuple[list[dict[str, object]] | None, str | None]:
    """Return a broker's configs, or why it did not return them."""
    if broker.state != UP:
        return None, f"broker {broker.id} is {broker.state}"
    try:
        with open_wire(parts.settings, asked.session, LOOK_TIMEOUT_S) as wire:
            return [each.as_json() for each in describe_configs(wire, BROKER, str(broker.id))], None
    except (LinkError, AdminError) as error:
        return None, str(error)
