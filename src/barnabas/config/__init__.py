"""Load settings from a YAML file, environment variables and flags; errors say what to write.

units              "1GB" and "7d" to numbers and back
keys               the table from keys in the file to fields of the settings
document           YAML to entries with their line numbers
topic_settings     the `topics` section
listener_settings  the `listeners` section
cluster_settings   checks of the `cluster` section
load               merges all sources: defaults < file < environment < flags
example            the commented file with every default, and docs/configuration.md
"""

from barnabas.config.example import example, page
from barnabas.config.load import load

__all__ = ["example", "load", "page"]
