"""Resolves the starting and ending limits in the options to offsets, with lookups in the
cluster.
"""

from collections.abc import Mapping

from barnabas.model.ids import TopicPartition
from barnabas.spark.query_errors import OptionError
from barnabas.spark.source.lookups import Cluster
from barnabas.spark.source.offset_json import EARLIEST, LATEST, Offsets
from barnabas.spark.source.source_options import AtOffsets, AtTimes, Edge, Limit, ReadSettings
from barnabas.spark.source.split_planning import covered, resolved


def starting_offsets(
    settings: ReadSettings, cluster: Cluster, earliest: Offsets, latest: Offsets
) -> dict[TopicPartition, int]:
    """Return the first offset of a read in each partition."""
    limit = settings.starting
    found = _offsets(limit, cluster, earliest, latest)
    missing = sorted(place for place, offset in found.items() if offset == LATEST)
    if missing and not settings.none_from_time_is_latest and isinstance(limit, AtTimes):
        raise OptionError(
            f"{limit.option}: {', '.join(map(str, missing))} has no record that young; choose an "
            "earlier time, or set startingOffsetsByTimestampStrategy to latest"
        )
    return resolved(found, earliest, latest)


def ending_offsets(
    settings: ReadSettings, cluster: Cluster, earliest: Offsets, latest: Offsets
) -> dict[TopicPartition, int]:
    """Return the end of a batch in each partition; the latest offset if no record is that young."""
    return resolved(_offsets(settings.ending, cluster, earliest, latest), earliest, latest)


def _offsets(
    limit: Limit, cluster: Cluster, earliest: Offsets, latest: Offsets
) -> Mapping[TopicPartition, int]:
    if isinstance(limit, Edge):
        return earliest if limit.offset == EARLIEST else latest
    if isinstance(limit, AtOffsets):
        covered(limit.option, limit.offsets, latest.keys())
        return limit.offsets
    if isinstance(limit.times_ms, int):
        return cluster.at_times(dict.fromkeys(latest, limit.times_ms))
    covered(limit.option, limit.times_ms, latest.keys())
    return cluster.at_times(limit.times_ms)
