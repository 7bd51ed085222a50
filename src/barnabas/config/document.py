"""Read a YAML document as a flat list of entries, each with its line number.

The module composes YAML nodes but does not construct Python values. The nodes keep their line and
plain text, so `barnabas.config.keys` parses `1GB`, `"1GB"`, `yes` and `0.5` itself, and YAML's
implicit types (`1:30` as ninety, `010` as eight) have no effect.
"""

from collections.abc import Iterator

import yaml

from barnabas.config.keys import LISTENERS, TOPICS, Entry
from barnabas.model.errors import ConfigError

NESTED = (TOPICS, LISTENERS)
"""Sections that have keys below the names in them."""
_NULL = "tag:yaml.org,2002:null"


def read(text: str, file: str) -> list[Entry]:
    """Return every entry of a document, or raise ConfigError if it is not valid."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}, line {line}: invalid YAML: {error.problem}.") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: invalid YAML: {error}.") from None
    if root is None or root.tag == _NULL:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(
            f"{file}, line {_line(root)}: write sections such as `broker:` with keys below them."
        )
    return list(_walk(root, (), file))


def _walk(node: yaml.MappingNode, path: tuple[str, ...], file: str) -> Iterator[Entry]:
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{file}, line {line}: a key must be a plain word.")
        here = (*path, key.value)
        if key.value in lines:
            first = lines[key.value]
            raise ConfigError(
                f"{file}, line {line}: {'.'.join(here)} is already set on line {first}; "
                f"remove one of the two."
            )
        lines[key.value] = line
        yield from _leaves(value, here, file, line)


def _leaves(node: yaml.Node, path: tuple[str, ...], file: str, line: int) -> Iterator[Entry]:
    origin = f"{file}, line {line}"
    match node:
        case yaml.MappingNode() if len(path) == 1 or (len(path) == 2 and path[0] in NESTED):
            # The mapping itself is also an entry: a topic may have no keys.
            yield Entry(path, None, origin)
            yield from _walk(node, path, file)
        case yaml.ScalarNode():
            yield Entry(path, None if node.tag == _NULL else node.value, origin)
        case yaml.SequenceNode() if all(isinstance(item, yaml.ScalarNode) for item in node.value):
            yield Entry(path, tuple(item.value for item in node.value), origin)
        case _:
            raise ConfigError(
                f"{origin}: {'.'.join(path)} has keys below it; write a value or a list of values."
            )


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
