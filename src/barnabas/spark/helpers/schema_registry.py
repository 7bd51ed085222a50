"""Fetches Avro schemas by id from a Confluent-compatible schema registry.

    from barnabas.spark import SchemaRegistry, avro_values

    avro_values(records, schema, schemas=SchemaRegistry("http://127.0.0.1:8081"))

Each worker asks for an id once. If an id does not exist, the record goes to the dead-letter topic;
if the registry does not answer, the task fails and Spark retries it.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping

NOT_FOUND = 404


class SchemaRegistry:
    """Returns the text of the schema with an id."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0
    ) -> None:
        """Take the URL; `headers` are sent with each request, such as Authorization."""
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"The registry is at {url!r}; write http://HOST:PORT")
        self._url = url.rstrip("/")
        self._headers = dict(headers or {})
        self._timeout_s = timeout_s

    def __call__(self, number: int) -> str:
        """Return a schema; raise LookupError if the id does not exist."""
        address = f"{self._url}/schemas/ids/{number}"
        request = urllib.request.Request(address, headers=self._headers)  # noqa: S310 - checked
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == NOT_FOUND:
                    raise LookupError(f"{address}: no such schema") from None
                raise
        return _avro(found, address)


def _avro(found: Mapping[str, object], address: str) -> str:
    kind = found.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise LookupError(f"{address} is of type {kind}, not AVRO")
    if found.get("references"):
        raise LookupError(f"{address} refers to other schemas; register it with them written out")
    return str(found["schema"])
