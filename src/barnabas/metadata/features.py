"""The feature level: which metadata records and requests the brokers of a cluster may use.

Brokers of two releases run side by side while a cluster is upgraded. Until the operator finalizes
the new level (`barnabas cluster upgrade`), every broker writes only what the older release can
read, so that each one can still be rolled back.

    level 1   release 0.1.0; no record says so
    level 2   `FeatureLevelChanged`, `ReplicationFactorChanged`,
              `TopicCreated.replication_factor`, `BrokerRegistered.endpoints`, the records of
              `security_records.py`, and `ConfigChanged` of client metrics and of groups

Clients see the level as Kafka's feature `barnabas.version`, beside `transaction.version`, which
every release so far has at 2, and `share.version`, which is 1 from level 2 on: then all brokers
know share groups.
"""

from typing import NamedTuple

from barnabas.model.version import __version__

FEATURE = "barnabas.version"
FIRST_LEVEL = 1
"""The level of a cluster whose metadata log names none."""
LATEST_LEVEL = 2
WANTED_FACTOR_LEVEL = 2
"""From this level on a topic records its wanted replication factor."""
SECURITY_LEVEL = 2
"""From this level on metadata has further listeners, and the records of security."""

CLIENT_METRICS_LEVEL = 2
"""From this level on metadata has subscriptions to the metrics of clients."""

SHARE_LEVEL = 2
"""From this level on there are share groups, and metadata has the configs of groups."""

SHARE_FEATURE = "share.version"
SHARE_FEATURE_LEVEL = 1

TRANSACTION_FEATURE = "transaction.version"
TRANSACTION_LEVEL = 2

INSTALL = (
    f"this release ({__version__}) knows levels {FIRST_LEVEL} to {LATEST_LEVEL}. "
    "Install on this machine the release that the other brokers run"
)


class Feature(NamedTuple):
    """A feature: the levels that this broker supports, and the one in use."""

    low: int
    high: int
    level: int


def features_at(level: int) -> dict[str, Feature]:
    """Return all features of a cluster at a feature level, by name."""
    return {
        TRANSACTION_FEATURE: Feature(0, TRANSACTION_LEVEL, TRANSACTION_LEVEL),
        SHARE_FEATURE: Feature(
            0, SHARE_FEATURE_LEVEL, SHARE_FEATURE_LEVEL if level >= SHARE_LEVEL else 0
        ),
        FEATURE: Feature(FIRST_LEVEL, LATEST_LEVEL, level),
    }
