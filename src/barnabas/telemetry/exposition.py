"""dcgm-exporter's page of metrics: Prometheus text in, readings of GPUs out.

The exporter gives no times, so the time of the scrape is the time of the sample. Lines are parsed
one by one: a page with one broken line still yields all the others.

A card cut into MIG instances reports each instance under the card's UUID; their GPU_I_ID is made
part of the id, as each is a GPU of its own to whoever rents it.
"""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from prometheus_client.parser import text_string_to_metric_families

from barnabas.telemetry.messages import MODEL_LABEL, Snapshot
from barnabas.telemetry.readings import Reading, Refusal, Tally, by_instant, is_no_value

PREFIX = "DCGM_FI_"
OWN_FIELDS = {"UUID", "device", "Hostname", "hostname", MODEL_LABEL}
"""Labels that become fields of the message; the others stay labels."""


def parse_exposition(
    text: str, *, at_ms: int, where: str, default_hostname: str, tally: Tally
) -> Iterator[Reading]:
    """Read a page that was scraped at an instant, one snapshot a GPU."""
    lines = _readings(text, at_ms, where, default_hostname, tally)
    return by_instant(lines)


@lru_cache(maxsize=65_536)
def parse_labels(text: str) -> Mapping[str, str]:
    """Read Prometheus label text: `gpu="0",UUID="GPU-..."`, with or without braces.

    Raises ValueError. The text of a GPU repeats with every row, hence the cache.
    """
    inner = text.strip().removeprefix("{").removesuffix("}").strip()
    if not inner:
        return {}
    # Dumps of Prometheus keep the metric's name among the labels; a second name is an error.
    name = "" if "__name__" in inner else "labels"
    _, labels, _ = _sample(f"{name}{{{inner}}} 0")
    return labels


def gpu_id_of(labels: Mapping[str, str]) -> str:
    """Return what tells this GPU, or MIG instance, from all others; "" where nothing does."""
    instance = labels.get("GPU_I_ID", "")
    uuid = labels.get("UUID", "") or labels.get("uuid", "")
    return f"{uuid}/{instance}" if uuid and instance else uuid


def snapshot_of(
    labels: Mapping[str, str], *, at_ms: int, default_hostname: str, metrics: Mapping[str, float]
) -> Snapshot:
    """Make a snapshot from Prometheus labels; raises ValueError where they name no GPU."""
    gpu_id = gpu_id_of(labels)
    if not gpu_id:
        raise ValueError("no label UUID says which GPU this is")
    index = labels.get("gpu", "")
    return Snapshot(
        timestamp_ms=at_ms,
        gpu_id=gpu_id,
        device=labels.get("device", "") or (f"nvidia{index}" if index else ""),
        hostname=labels.get("Hostname", "") or labels.get("hostname", "") or default_hostname,
        model=labels.get(MODEL_LABEL, ""),
        labels={name: text for name, text in labels.items() if name not in OWN_FIELDS and text},
        metrics=metrics,
    )


def _readings(
    text: str, at_ms: int, where: str, default_hostname: str, tally: Tally
) -> Iterator[Reading]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            name, labels, value = _sample(line)
            if math.isinf(value):
                raise ValueError("an infinite value")  # noqa: TRY301 - refused like the others
            if not name.startswith(PREFIX):
                tally.unknown[name] += 1
            elif math.isnan(value) or is_no_value(value):
                tally.no_value += 1
            else:
                yield snapshot_of(
                    labels, at_ms=at_ms, default_hostname=default_hostname, metrics={name: value}
                )
        except ValueError as error:
            yield Refusal(where=f"{where} line {number}", reason=_reason(error), raw=line.encode())


def _sample(line: str) -> tuple[str, dict[str, str], float]:
    """Read one line of the exposition format."""
    try:
        for family in text_string_to_metric_families(line + "\n"):
            for sample in family.samples:
                return sample.name, sample.labels, _whole(float(sample.value))
    except (IndexError, KeyError, AssertionError) as error:  # how the parser meets some garbage
        raise ValueError(f"not a line of Prometheus text ({type(error).__name__})") from error
    raise ValueError("not a line of Prometheus text")


def _whole(value: float) -> float:
    """Return an int where nothing is lost by it: shorter on the wire."""
    return int(value) if value.is_integer() else value


def _reason(error: ValueError) -> str:
    return str(error) or "not a line of Prometheus text"
