"""The server-side assignors, by their names."""

from collections.abc import Mapping

from barnabas.groups.consumer.assignors import range as by_range
from barnabas.groups.consumer.assignors import uniform
from barnabas.groups.consumer.assignors.spec import Assign

DEFAULT = "uniform"

ASSIGNORS: Mapping[str, Assign] = {DEFAULT: uniform.assign, "range": by_range.assign}
