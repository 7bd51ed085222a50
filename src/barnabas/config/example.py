"""The commented file with every setting and its default, written from the settings themselves.

The docstring under each field of `barnabas.model.settings` is the comment above its key, so the
two cannot drift apart. `page` wraps it for the manual, and a test keeps docs/configuration.md
equal to it.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator

from barnabas.config.keys import SECTIONS, TABLE, Key, Kind
from barnabas.config.units import format_size, format_time
from barnabas.model import settings as model
from barnabas.model.settings import Settings

_WIDTH = 96
_TOPICS = """\
# Topics to be made at the start where they do not exist. A topic takes partitions,
# replication_factor, the storage keys above that topics inherit, and any Kafka topic config
# under its own name:
#
# topics:
#   gpu-telemetry:
#     partitions: 12
#     retention_time: 30d
#     retention_size: 500GB
#     compression_type: snappy
#     message.timestamp.type: LogAppendTime
topics: {}
"""

_PAGE = """\
# Configuration

Settings come from four places; a later one wins over an earlier one:

1. the defaults below,
2. a YAML file: `barnabas serve --config barnabas.yaml`,
3. environment variables, named by section and key: `BARNABAS_STORAGE_SEGMENT_SIZE=512MB`,
4. flags of the command.

Sizes are written as `512MB` or `16KiB` (both count in 1024s) or as a number of bytes, times as
`500ms`, `30s`, `5m`, `24h`, `7d` or as a number of milliseconds, and `unlimited` (or `-1`)
where there need be no limit. A list in an environment variable has commas between its items.
A key or variable that does not exist, a key that is set twice and a value that makes no sense
stop the broker at its start, with a message that names the line and what to write instead.

`barnabas serve --print-config` prints this file with every setting, its meaning and its default:

```yaml
{example}```

<!-- Written by tools/write_configuration_page.py from src/barnabas/model/settings.py. -->
"""


def example() -> str:
    """Return a YAML file that says what every setting does and sets its default."""
    return "\n".join(["\n".join(_section(section)) + "\n" for section in SECTIONS] + [_TOPICS])


def page() -> str:
    """Return docs/configuration.md."""
    return _PAGE.format(example=example())


def _section(section: str) -> Iterator[str]:
    values = getattr(Settings(), section)
    comments = _field_docs(type(values).__name__)
    yield from _comment(_field_docs("Settings")[section], "")
    yield f"{section}:"
    for key in TABLE:
        if key.section == section:
            yield from _comment(comments[key.field], "  ")
            yield f"  {key.name}: {_written(key, getattr(values, key.field))}"


def _comment(text: str, indent: str) -> list[str]:
    one_line = " ".join(text.split())
    return textwrap.wrap(
        one_line, _WIDTH, initial_indent=indent + "# ", subsequent_indent=indent + "# "
    )


def _written(key: Key, value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and key.kind in (Kind.SIZE, Kind.TIME):
        return format_size(value) if key.kind is Kind.SIZE else format_time(value)
    return str(value)


def _field_docs(class_name: str) -> dict[str, str]:
    """Return the string under each field; Python itself throws those away."""
    body = ast.parse(inspect.getsource(getattr(model, class_name))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(after, ast.Expr):
            docs[ast.unparse(statement.target)] = str(ast.literal_eval(after.value))
    return docs
