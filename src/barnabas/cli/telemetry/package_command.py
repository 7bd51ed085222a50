"""`barnabas telemetry package`: write the package for a Spark cluster without Barnabas."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, say

HELP = """Write the package as a zip for spark-submit, and its main file beside it.

`barnabas telemetry run --master ...` sends the same zip automatically.
"""
EPILOG = "Example: barnabas telemetry package --out build/barnabas.zip"

Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the zip.")]


def register(app: typer.Typer) -> None:
    """Add the command to the group."""
    app.command("package", help=HELP, epilog=EPILOG)(package)


def package(*, out: Out = Path("barnabas.zip"), as_json: Json = False) -> None:
    """Write the zip and the main file."""
    from barnabas.telemetry.jobs import packing

    if not out.parent.is_dir():
        raise CommandError(f"There is no directory {out.parent}; create it, or pass another --out")
    count = packing.write(out)
    main = out.parent / packing.SUBMIT
    main.write_text(packing.SUBMIT_TEXT, encoding="utf-8")
    needs = list(packing.REQUIREMENTS.values())
    if as_json:
        print_json({"package": str(out), "main": str(main), "files": count, "workers_need": needs})
        return
    say(f"{out} holds {count} files; {main} is what spark-submit starts:")
    say(f"  spark-submit --master URL --py-files {out} {main} --bootstrap HOST:PORT --lake DIR")
    say("The workers' Python must have the same minor version as the driver's, and:")
    say(f"  pip install {' '.join(repr(each) for each in needs)}")
    say("The driver's Python needs: pip install 'barnabas[telemetry]'")
