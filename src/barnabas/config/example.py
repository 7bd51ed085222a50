"""Generate the example configuration file, with a comment and the default for each setting.

The docstring under each field of `barnabas.model.settings` is the comment above its key. `page`
returns docs/configuration.md with the example, and a test checks that the file is current.
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
_LISTENERS = """\
# The addresses for clients, by name. Without this section there is one without encryption,
# PLAINTEXT, at broker.host and broker.port. With it these two have no effect, and --listen must
# name a listener: `--listen SECURE=0.0.0.0:9093`. Clients learn the addresses of the listener that
# they connected to, so all brokers of a cluster have listeners of the same names; the first one is
# used where a broker names a single address. docs/security-tls.md explains TLS.
#
# listeners:
#   INTERNAL:
#     listen: 10.0.0.1:9092         # [::]:9092 and 0.0.0.0:9092 listen on all addresses
#     protocol: PLAINTEXT           # the default; or SSL, SASL_PLAINTEXT, SASL_SSL
#   SECURE:
#     listen: 0.0.0.0:9093
#     advertised: kafka.example.com:9093
#     protocol: SSL
#     certificate: broker.pem       # with the certificates between it and the authority
#     key: broker.key               # null: the key is in the file of the certificate
#     key_password_file: null       # or key_password_variable: an environment variable
#     client_authentication: required   # none (the default), requested or required
#     authorities: clients-ca.pem   # who signs the certificates of clients
#     principal_mapping_rules: ["RULE:^CN=(.*?),.*$/$1/L", DEFAULT]
#     max_connections: 0            # 0 means no limit
#   PASSWORDS:
#     listen: 0.0.0.0:9094
#     protocol: SASL_SSL
#     certificate: broker.pem
#     key: broker.key
#     mechanisms: [SCRAM-SHA-512, SCRAM-SHA-256]   # or PLAIN, OAUTHBEARER
listeners: {}
"""
_TOPICS = """\
# Topics that are created at the start if they do not exist. A topic has partitions,
# replication_factor, the storage keys above that topics inherit, and any Kafka topic config
# under its Kafka name:
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

Settings come from four places. A later one overrides an earlier one:

1. the defaults below,
2. a YAML file: `barnabas serve --config barnabas.yaml`,
3. environment variables, named by section and key: `BARNABAS_STORAGE_SEGMENT_SIZE=512MB`,
4. flags of the command.

Write sizes as `512MB` or `16KiB` (both use 1024) or as a number of bytes, times as
`500ms`, `30s`, `5m`, `24h`, `7d` or as a number of milliseconds, and `unlimited` (or `-1`)
for no limit. In an environment variable, separate the items of a list with commas.
The broker does not start if a key or variable does not exist, a key is set twice or a value is
invalid. The error names the line and says what to write instead.

`barnabas serve --print-config` prints this file with every setting, its meaning and its default:

```yaml
{example}```

<!-- Written by tools/write_configuration_page.py from src/barnabas/model/settings.py. -->
"""


def example() -> str:
    """Return a YAML file with a description and the default of each setting."""
    sections = ["\n".join(_section(section)) + "\n" for section in SECTIONS]
    return "\n".join([*sections, _LISTENERS, _TOPICS])


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
    """Return the docstring under each field; Python does not keep it at run time."""
    body = ast.parse(inspect.getsource(getattr(model, class_name))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(after, ast.Expr):
            docs[ast.unparse(statement.target)] = str(ast.literal_eval(after.value))
    return docs
