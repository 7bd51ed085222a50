"""The feature level: which metadata records and requests the brokers of a cluster may use.

Brokers of two releases run side by side while a cluster is upgraded. Until the operator finalizes
the new level (`barnabas cluster upgrade`), every broker writes only what the older release can
read, so that each one can still be rolled back.

    level 1   release 0.1.0; no record says so
    level 2   `FeatureLevelChanged`, `ReplicationFactorChanged`, and
              `TopicCreated.replication_factor`
"""

FEATURE = "barnabas.version"
FIRST_LEVEL = 1
"""What a cluster is at whose metadata log names no level."""
LATEST_LEVEL = 2
WANTED_FACTOR_LEVEL = 2
"""From here on a topic remembers the replication factor it was asked for."""
