"""Settings from a YAML file, the environment and flags; wrong ones are refused with the remedy.

units      "1GB" and "7d" to numbers and back
keys       the table from keys in the file to fields of the settings
document   YAML to entries that know their line
topics     the `topics` section
load       all of it together: defaults < file < environment < flags
example    the commented file with every default, and the page of the manual
"""

from barnabas.config.example import example, page
from barnabas.config.load import load

__all__ = ["example", "load", "page"]
