"""`barnabas telemetry silence`: suppress alerts for some time."""

import getpass
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.connecting import require_listener, settings
from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, print_table, say
from barnabas.cli.telemetry.sending_options import parse_instant_ms
from barnabas.telemetry.samples.telemetry_topics import SILENCES

if TYPE_CHECKING:
    from barnabas.telemetry.notify.silences import Silence

HELP = "Suppress alerts for some time, by finding, host, GPU and namespace."
Topic = Annotated[str, typer.Option("--topic", help="The topic of silences.")]
Pattern = Annotated[str | None, typer.Option(metavar="PATTERN", help="A pattern with * and ?.")]

silence = typer.Typer(no_args_is_help=True)


@silence.command(
    epilog="Example: barnabas telemetry silence add --host 'gpu-node-1*' --for 2h "
    "--reason 'new cooling'"
)
def add(  # noqa: PLR0913 - one parameter an option
    *,
    finding: Pattern = None,
    host: Pattern = None,
    gpu: Pattern = None,
    namespace: Pattern = None,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="now, or as 2026-03-01T12:00:00Z.")
    ] = "now",
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="In the same format.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Such as 2h, instead of --to.")
    ] = None,
    reason: Annotated[str, typer.Option(help="The reason.")],
    author: Annotated[
        str | None, typer.Option(help="The author; default: the user's name.")
    ] = None,
    topic: Topic = SILENCES,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Silence the alerts that match all patterns, from now or from a time on."""
    from barnabas.telemetry.notify import silence_topic
    from barnabas.telemetry.notify.silences import Silence, SilenceError

    given = {"finding": finding, "host": host, "gpu": gpu, "namespace": namespace}
    start_ms = parse_instant_ms(start, "--from")
    try:
        made = Silence(
            silence_id=uuid.uuid4().hex[:12],
            matchers={name: text for name, text in given.items() if text is not None},
            start_ms=start_ms,
            end_ms=_end_ms(start_ms, end, duration),
            author=author or getpass.getuser(),
            reason=reason,
        )
    except SilenceError as error:
        raise CommandError(f"{error}; --help shows the options") from error
    require_listener(bootstrap)
    client = settings(bootstrap, properties)
    silence_topic.ensure(client, topic)
    _put(client, made.silence_id, made.to_json(), topic)
    if as_json:
        print_json(_document(made))
    else:
        say(f"Silence {made.silence_id} is active until {_time(made.end_ms)}")


@silence.command("list", epilog="Example: barnabas telemetry silence list --json")
def show(
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include expired silences.")] = False,
    topic: Topic = SILENCES,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """List current and future silences."""
    now_ms = time.time_ns() // 1_000_000
    found = _read(settings_of(bootstrap, properties), topic)
    shown = [each for each in found if everything or each.end_ms > now_ms]
    if as_json:
        print_json([_document(each) for each in shown])
        return
    if not shown:
        say("No alert is silenced")
        return
    rows = [
        (
            each.silence_id,
            _state(each, now_ms),
            _time(each.start_ms),
            _time(each.end_ms),
            " ".join(f"{name}={text}" for name, text in each.matchers.items()),
            each.author,
            each.reason,
        )
        for each in shown
    ]
    print_table(("ID", "STATE", "FROM", "TO", "MATCHES", "AUTHOR", "REASON"), rows)


@silence.command(epilog="Example: barnabas telemetry silence remove 3f0c9a1b22d4")
def remove(
    silence_id: Annotated[str, typer.Argument(metavar="ID", help="As `silence list` shows it.")],
    *,
    topic: Topic = SILENCES,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """End a silence: alerts that are still active are sent again."""
    client = settings_of(bootstrap, properties)
    if silence_id not in {each.silence_id for each in _read(client, topic)}:
        raise CommandError(
            f"There is no silence {silence_id}; `barnabas telemetry silence list --all` lists them"
        )
    _put(client, silence_id, None, topic)
    say(f"Silence {silence_id} is removed")


def settings_of(bootstrap: str, properties: list[str] | None) -> dict[str, object]:
    """Return librdkafka's properties for a broker that accepts connections."""
    require_listener(bootstrap)
    return settings(bootstrap, properties)


def _read(client: dict[str, object], topic: str) -> "list[Silence]":
    from barnabas.telemetry.notify import silence_topic
    from barnabas.telemetry.notify.silence_topic import SilenceReader, SilenceTopicError

    silence_topic.ensure(client, topic)
    reader = SilenceReader(client, topic)
    try:
        reader.load()
    except SilenceTopicError as error:
        raise CommandError(str(error)) from error
    finally:
        reader.close()
    return reader.silences


def _put(client: dict[str, object], silence_id: str, value: bytes | None, topic: str) -> None:
    from barnabas.telemetry.notify import silence_topic
    from barnabas.telemetry.notify.silence_topic import SilenceTopicError

    try:
        silence_topic.put(client, silence_id, value, topic)
    except SilenceTopicError as error:
        raise CommandError(str(error)) from error


def _end_ms(start_ms: int, end: str | None, duration: str | None) -> int:
    if (end is None) == (duration is None):
        raise CommandError("Pass --for DURATION or --to TIME: a silence has an end")
    if duration is not None:
        return start_ms + parse_duration_ms(duration, "--for")
    assert end is not None
    return parse_instant_ms(end, "--to")


def _state(each: "Silence", now_ms: int) -> str:
    if each.is_active(now_ms):
        return "active"
    return "pending" if now_ms < each.start_ms else "over"


def _document(each: "Silence") -> dict[str, object]:
    return {
        "id": each.silence_id,
        "matchers": dict(each.matchers),
        "from": _time(each.start_ms),
        "to": _time(each.end_ms),
        "author": each.author,
        "reason": each.reason,
    }


def _time(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def register(app: typer.Typer) -> None:
    """Add the commands to `barnabas telemetry`."""
    app.add_typer(silence, name="silence", help=HELP)
