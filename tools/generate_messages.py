"""Write `src/barnabas/protocol/messages/` from Kafka's message definitions, and with
`--coordinators` the records of `__consumer_offsets` and `__transaction_state`.

Only facts cross over: names, types, versions, nullability, defaults and tags. Request and
response of one API share a module; where both define a struct of the same name, each takes
the name of its message in front (`VoteRequestTopicData`). Messages that no version of the
protocol holds any more are left out.

    python tools/generate_messages.py [--check] [folder of JSON definitions]

The records of the coordinators are defined in Kafka's own jars, not in the clients':

    python tools/generate_messages.py --coordinators kafka-group-coordinator-4.3.0.jar \\
        kafka-transaction-coordinator-4.3.0.jar
"""

import argparse
import json
import keyword
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
DEFINITIONS = ROOT.parent / "shared" / "data" / "kafka-4.3-message-schemas"
OUTPUT = ROOT / "src" / "barnabas" / "protocol" / "messages"
COORDINATORS = ROOT / "src" / "barnabas" / "protocol" / "coordinator_records"
BANNER = "# Written by tools/generate_messages.py; edit that instead.\n"
SCALARS = {
    "bool": "bool",
    "bytes": "bytes",
    "float64": "float",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "int",
    "records": "Records",
    "string": "str",
    "uint16": "int",
    "uint32": "int",
    "uuid": "bytes",
}
ZEROS = {"bool": "False", "bytes": 'b""', "str": '""', "float": "0.0", "int": "0", "Records": 'b""'}
UNWANTED = ("LegacyOffset", "StreamsGroupM", "StreamsGroupT", "StreamsGroupCurrent")
"""Records of the coordinators that we neither write nor read."""
Json = dict[str, Any]
Names = dict[str, str]


def snake(name: str) -> str:
    """Return a CamelCase name in snake_case."""
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def attribute(name: str) -> str:
    """Return the Python attribute for a field."""
    attribute = snake(name)
    return attribute + "_" if keyword.iskeyword(attribute) else attribute


def load(texts: Iterable[str]) -> list[Json]:
    """Return every definition that has versions left, by name."""
    messages = [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]
    return [
        message
        for message in messages
        if message["validVersions"] != "none" and not message["name"].startswith(UNWANTED)
    ]


def module_name(message: Json) -> str:
    """Return the module that holds a message: that of its API where it has one."""
    name: str = message["name"]
    suffix = "(Request|Response|Key|Value)$"
    return snake(re.sub(suffix, "", name) if "apiKey" in message else name)


def structs(message: Json) -> Iterator[tuple[str, list[Json]]]:
    """Yield name and fields of every struct in a message, inner ones first."""

    def nested(fields: list[Json]) -> Iterator[tuple[str, list[Json]]]:
        for field in fields:
            if "fields" in field:
                yield from nested(field["fields"])
                yield field["type"].removeprefix("[]"), field["fields"]

    for struct in message.get("commonStructs", ()):
        yield from nested(struct["fields"])
        yield struct["name"], struct["fields"]
    yield from nested(message["fields"])


def renamed(message: Json, siblings: list[Json]) -> Names:
    """Return the class name for each struct of a message."""
    own = [name for name, _ in structs(message)]
    others = {name for other in siblings if other is not message for name, _ in structs(other)}
    return {name: message["name"] + name if name in others else name for name in own}


def default_fact(field: Json) -> str | None:
    """Return a default other than zero, empty or false, as the facts spell it."""
    default = field.get("default")
    if default is None or default == "":  # JSON's null is no default; the text "null" is one
        return None
    text = str(default).lower()
    if text in {"null", "true"}:
        return text
    return None if text == "false" or int(text, 0) == 0 else str(int(text, 0))


def facts(field: Json, names: Names) -> str:
    """Return the line of facts that `barnabas.protocol.fields` reads."""
    prefix = "[]" if field["type"].startswith("[]") else ""
    element = field["type"].removeprefix("[]")
    words = [attribute(field["name"]), prefix + names.get(element, element)]
    words.append(field.get("versions") or field["taggedVersions"])
    if field.get("nullableVersions", "none") != "none":
        words.append(f"nullable={field['nullableVersions']}")
    default = default_fact(field)
    if default is not None:
        words.append(f"default={default}")
    if "tag" in field:
        words.append(f"tag={field['tag']} tagged={field['taggedVersions']}")
    if "flexibleVersions" in field:
        words.append(f"flexible={field['flexibleVersions']}")
    if field.get("ignorable"):
        words.append("ignorable")
    return " ".join(words)


def annotation(field: Json, names: Names) -> str:
    """Return the Python type of a field."""
    element = field["type"].removeprefix("[]")
    python = SCALARS.get(element) or names[element]
    if field["type"].startswith("[]"):
        python = f"list[{python}]"
    return f"{python} | None" if field.get("nullableVersions", "none") != "none" else python


def parameter_default(field: Json) -> str:
    """Return the default of a constructor's parameter."""
    fact = default_fact(field)
    if fact is not None:
        return {"null": "None", "true": "True"}.get(fact, fact)
    if field["type"] == "uuid":
        return "bytes(16)"
    return ZEROS[SCALARS[field["type"]]] if field["type"] in SCALARS else "FRESH"


def assignment(field: Json, names: Names) -> str:
    """Return the constructor's line for a field."""
    name = attribute(field["name"])
    if parameter_default(field) != "FRESH":
        return f"        self.{name} = {name}\n"
    fresh = "[]" if field["type"].startswith("[]") else f"{names[field['type']]}()"
    python = annotation(field, names)
    return f"        self.{name}: {python} = {fresh} if {name} is FRESH else {name}\n"


def class_source(name: str, doc: str, fields: list[Json], message: Json, names: Names) -> str:
    """Return one class."""
    low, high = version_range(message)
    slots = "".join(f'        "{attribute(field["name"])}",\n' for field in fields)
    lines = [f'\n\nclass {name}(Message):\n    """{doc}"""\n\n']
    lines.append(f"    __slots__ = (\n{slots}    )\n" if fields else "    __slots__ = ()\n")
    lines.append(f"    VERSIONS = ({low}, {high})\n")
    if flexible_from(message) is not None:
        lines.append(f"    FLEXIBLE_FROM = {flexible_from(message)}\n")
    if not fields:
        return "".join(lines)
    lines.append("    FIELDS = (\n")
    lines += [f'        "{facts(field, names)}",\n' for field in fields]
    lines.append("    )\n\n    def __init__(\n        self,\n        *,\n")
    for field in fields:
        python = annotation(field, names)
        default = parameter_default(field)
        lines.append(f"        {attribute(field['name'])}: {python} = {default},\n")
    lines.append("    ) -> None:\n")
    lines += [assignment(field, names) for field in fields]
    return "".join(lines)


def version_range(message: Json) -> tuple[int, int]:
    """Return the lowest and highest version of a message."""
    low, _, high = message["validVersions"].partition("-")
    return int(low), int(high or low)


def flexible_from(message: Json) -> int | None:
    """Return the first flexible version, if there is one."""
    text: str = message["flexibleVersions"]
    return None if text == "none" else int(text.removesuffix("+"))


def message_doc(message: Json) -> str:
    """Return the one line that says what a message is."""
    words = snake(message["name"]).replace("_", " ").capitalize()
    versions = message["validVersions"]
    flexible = flexible_from(message)
    tail = "never flexible" if flexible is None else f"flexible from {flexible}"
    return f"{words}, version{'s' if '-' in versions else ''} {versions}, {tail}."


def module_source(messages: list[Json]) -> str:
    """Return the module that holds these messages."""
    bodies = []
    for message in messages:
        names = renamed(message, messages)
        for name, fields in structs(message):
            doc = f"Part of {message['name']}."
            bodies.append(class_source(names[name], doc, fields, message, names))
        doc = message_doc(message)
        bodies.append(class_source(message["name"], doc, message["fields"], message, names))
    body = "".join(bodies)
    used = [name for name in ("FRESH", "Records") if re.search(rf"\b{name}\b", body)]
    imports = ", ".join(sorted(["Message", *used], key=lambda name: (not name.isupper(), name)))
    title = " and ".join(message["name"] for message in messages)
    return (
        f'"""{title}."""\n\n{BANNER}\nfrom __future__ import annotations\n\n'
        f"from barnabas.protocol.message import {imports}\n{body}"
    )


def api_line(request: Json) -> str:
    """Return one entry of the table of APIs."""
    stem = request["name"].removesuffix("Request")
    low, high = version_range(request)
    flexible = flexible_from(request)
    unstable = bool(request.get("latestVersionUnstable"))
    listeners = tuple(request.get("listeners", ()))
    values = [stem, module_name(request), f"{stem}Request", f"{stem}Response", low, high]
    text = ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values)
    names = "".join(f'"{name}", ' for name in listeners).strip().removesuffix(",")
    names = f"({names},)" if len(listeners) == 1 else f"({names})"
    first = "NEVER" if flexible is None else flexible
    return f"    {request['apiKey']}: ApiFacts({text}, {first}, {unstable}, {names}),\n"


def index_source(messages: list[Json]) -> str:
    """Return the tables that say where each message is, without importing it."""
    requests = [message for message in messages if message["type"] == "request"]
    others = [message for message in messages if "apiKey" not in message]
    apis = "".join(api_line(request) for request in sorted(requests, key=lambda m: m["apiKey"]))
    data = "".join(f'    "{message["name"]}": "{module_name(message)}",\n' for message in others)
    return (
        f'"""Where every message is, and which versions of it there are."""\n\n{BANNER}\n'
        "from barnabas.protocol.message import NEVER, ApiFacts\n\n"
        f"APIS: dict[int, ApiFacts] = {{\n{apis}}}\n\n"
        f"OTHERS: dict[str, str] = {{\n{data}}}\n"
    )


def record_line(key: Json, values: dict[int, Json]) -> str:
    """Return one entry of the table of coordinator records."""
    value = values[key["apiKey"]]
    text = ", ".join(f'"{name}"' for name in (module_name(key), key["name"], value["name"]))
    return f"    {key['apiKey']}: RecordFacts({text}),\n"


def record_index_source(messages: list[Json]) -> str:
    """Return the tables that say which key belongs to which value, for each coordinator."""
    tables = {"GROUP_RECORDS": False, "TRANSACTION_RECORDS": True}
    parts = []
    for table, transactional in tables.items():
        own = [m for m in messages if m["name"].startswith("Transaction") == transactional]
        keys = [message for message in own if message["type"] == "coordinator-key"]
        values = {m["apiKey"]: m for m in own if m["type"] == "coordinator-value"}
        lines = "".join(record_line(key, values) for key in sorted(keys, key=lambda m: m["apiKey"]))
        parts.append(f"{table}: dict[int, RecordFacts] = {{\n{lines}}}\n")
    return (
        f'"""Which value belongs to which key, by the number that a stored key begins with."""\n\n'
        f"{BANNER}\nfrom barnabas.protocol.message import RecordFacts\n\n" + "\n".join(parts)
    )


def generate(messages: list[Json]) -> dict[str, str]:
    """Return the text of every module by file name."""
    modules: dict[str, list[Json]] = {}
    for message in messages:
        modules.setdefault(module_name(message), []).append(message)
    files = {f"{name}.py": module_source(members) for name, members in modules.items()}
    if messages[0]["type"].startswith("coordinator"):
        files["index_tables.py"] = record_index_source(messages)
        doc = "What the coordinators store; written by tools/generate_messages.py, never by hand."
    else:
        files["index_tables.py"] = index_source(messages)
        doc = "Every Kafka message; written by tools/generate_messages.py, never by hand."
    files["__init__.py"] = f'"""{doc}"""\n'
    return files


def definitions(source: Path) -> Iterator[str]:
    """Yield the definitions in a folder or a jar."""
    if source.is_dir():
        yield from (path.read_text() for path in sorted(source.glob("*.json")))
        return
    with ZipFile(source) as jar:
        for name in sorted(jar.namelist()):
            if name.startswith("common/message/") and name.endswith(".json"):
                yield jar.read(name).decode()


def main() -> int:
    """Write the modules, or say whether they are up to date."""
    parser = argparse.ArgumentParser(description="Write the message classes.")
    parser.add_argument("sources", type=Path, nargs="*", default=[DEFINITIONS])
    parser.add_argument("--coordinators", action="store_true", help="coordinators' records")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when out of date")
    options = parser.parse_args()
    output = COORDINATORS if options.coordinators else OUTPUT
    wanted = generate(load(text for source in options.sources for text in definitions(source)))
    present = {path.name: path.read_text() for path in output.glob("*.py")}
    stale = sorted(name for name in wanted | present if wanted.get(name) != present.get(name))
    if options.check:
        print(f"out of date: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    output.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in wanted:
            (output / name).write_text(wanted[name])
        else:
            (output / name).unlink()
    print(f"{len(wanted)} modules, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
