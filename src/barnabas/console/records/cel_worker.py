"""A process that evaluates CEL expressions for the console, one batch of records a line.

    in:   {"cel": "value.amount > 100"}                       out:  {"ready": true}
    in:   {"records": [{"key": "a", "value": {...}}, ...]}    out:  {"matches": [0, 3], "errors": 1}

The library holds the interpreter's lock while it evaluates, and an expression can take arbitrarily
long. In a process of its own it cannot stop the console, which kills it after two seconds. A field
that a record lacks is an error of this record: it does not match, and is counted.
"""

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

MEMORY_BYTES_MAX = 1 << 30


def main() -> None:
    """Serve until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin, sys.stdout)


def serve(source: TextIO, target: TextIO) -> None:
    """Answer each line."""
    try:
        import cel
    except ModuleNotFoundError:
        source.readline()
        target.write(json.dumps({"missing": True}) + "\n")
        target.flush()
        return
    program: Any = None
    for line in source:
        asked = json.loads(line)
        if "cel" in asked:
            try:
                program = cel.compile(asked["cel"])
                answer: dict[str, Any] = {"ready": True}
            except Exception as error:  # noqa: BLE001 - whatever the library raises
                answer = {"invalid": str(error)}
        else:
            answer = evaluate(program, asked["records"])
        target.write(json.dumps(answer) + "\n")
        target.flush()


def evaluate(program: Any, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: ANN401
    """Return the numbers of the records that match, how many raised, and the last reason."""
    matches, errors, reason = [], 0, None
    for number, record in enumerate(records):
        try:
            if program.execute(dict(record)) is True:
                matches.append(number)
        except Exception as error:  # noqa: BLE001 - a missing field, another type, a division
            errors += 1
            reason = str(error)
    return {"matches": matches, "errors": errors, "reason": reason}


if __name__ == "__main__":
    main()
