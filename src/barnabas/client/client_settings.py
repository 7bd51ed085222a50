"""Convert the options of this package to librdkafka's properties.

Any librdkafka property can be given in `settings={...}`, which overrides the options. See
librdkafka's CONFIGURATION.md for the names.

librdkafka has one property, `auto.offset.reset`, for two cases: where a group without committed
offsets begins, and what happens if the log does not have the next offset. Here they are two
options, `start` and `out_of_range`. The property is used for the second; `Session` handles the
first if they differ.
"""

from collections.abc import Mapping

from confluent_kafka import KafkaException

from barnabas.client.arguments import PLACES, WORDS, Place
from barnabas.client.errors import ClientError, SettingError, from_exception
from barnabas.model.ids import NO_GROUP

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
RESET = "auto.offset.reset"
RESETS: dict[str, str] = {"beginning": "earliest", "end": "latest", "error": "error"}
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ALL_REPLICAS = ("all", "-1")

Setting = str | int | float | bool
Settings = Mapping[str, Setting]


def common(bootstrap: str) -> dict[str, Setting]:
    """Return the properties of all clients."""
    # Without an address librdkafka waits forever, without an error.
    if not isinstance(bootstrap, str) or not bootstrap.strip():
        raise SettingError(
            f'bootstrap={bootstrap!r} is not an address; write "host:port,host:port"'
        )
    # librdkafka's log lines would appear on the program's stderr; we get its errors anyway.
    return {"bootstrap.servers": bootstrap, "client.id": "barnabas", "log_level": 0}


def for_producer(
    bootstrap: str,
    *,
    acks: str,
    compression: str,
    linger_ms: float,
    settings: Settings | None,
) -> dict[str, Setting]:
    """Return a producer's properties; with acks=all it is idempotent."""
    if compression not in COMPRESSIONS:
        raise SettingError(_not_known("compression", compression, ", ".join(COMPRESSIONS)))
    if str(acks) not in (*ALL_REPLICAS, "0", "1"):
        raise SettingError(_not_known("acks", acks, '"all", "1" or "0"'))
    return {
        **common(bootstrap),
        "acks": acks,
        "compression.type": compression,
        "linger.ms": linger_ms,
        "enable.idempotence": str(acks) in ALL_REPLICAS,
        **_given(settings),
    }


def for_consumer(
    bootstrap: str,
    *,
    group: str | None,
    auto_commit: bool,
    out_of_range: str,
    settings: Settings | None,
) -> dict[str, Setting]:
    """Return a consumer's properties; without a group no coordinator is used."""
    if group is not None and (not isinstance(group, str) or not group):
        raise SettingError(f"group={group!r} is not a group name; omit it, or write a name")
    if not isinstance(auto_commit, bool):
        raise SettingError(_not_known("auto_commit", auto_commit, "True or False"))
    return {
        **common(bootstrap),
        "group.id": group or NO_GROUP,
        RESET: RESETS[_out_of_range(out_of_range)],
        "enable.auto.commit": auto_commit and group is not None,
        # Offsets are stored when a message is processed, not when it is fetched.
        "enable.auto.offset.store": False,
        **_given(settings),
    }


def group_start(start: str, out_of_range: str, settings: Settings | None) -> Place | None:
    """Return where a group without offsets begins; None if librdkafka's property says so."""
    if start not in PLACES:
        raise SettingError(_not_known("start", start, WORDS))
    place = PLACES[start]
    return None if RESET in _given(settings) or place == _out_of_range(out_of_range) else place


def setting_error(exception: Exception) -> ClientError:
    """Return the error for a setting that librdkafka rejected."""
    if isinstance(exception, KafkaException):
        found = from_exception(exception)
        return SettingError(str(found), found.code)
    return SettingError(str(exception))


def _out_of_range(word: str) -> str:
    if word == "error":
        return word
    if word not in PLACES:
        raise SettingError(_not_known("out_of_range", word, f'"error", {WORDS}'))
    return PLACES[word]


def _given(settings: Settings | None) -> Settings:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise SettingError(f"settings is a dict of librdkafka's properties, not {settings!r}")
    return settings


def _not_known(name: str, value: object, accepted: str) -> str:
    return f"{name}={value!r} is not known; write {accepted}"
