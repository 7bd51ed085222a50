"""`barnabas bench`: measure produce and consume throughput and latency of a broker.

The topic is created if necessary, and kept, so that `bench consume` can read what `bench produce`
wrote. The results include the client, which is Python on one core.
"""

import sys
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.admin.admin_errors import AdminError
from barnabas.admin.connecting import existing_topic, open_consumer, open_producer
from barnabas.admin.topic_positions import Beginning, End
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Properties
from barnabas.cli.common.output import print_json, say
from barnabas.cli.common.progress import Progress
from barnabas.cli.records.produce_command import Acks, Compression
from barnabas.model.ids import NO_GROUP

if TYPE_CHECKING:
    from barnabas.cli.bench.bench_figures import Result
    from barnabas.cli.bench.bench_load import Tick

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

DEFAULT_TOPIC = "barnabas-bench"
SEED = 7

Topic = Annotated[str, typer.Option("--topic", "-t", help="The topic.")]
Size = Annotated[int, typer.Option(min=16, help="Bytes per value.")]
Rate = Annotated[
    float | None, typer.Option(min=0.001, help="Records per second; default: no limit.")
]
AcksOption = Annotated[
    Acks, typer.Option(help="Acknowledgements: 0 none, 1 the leader, all in-sync replicas.")
]
CompressionOption = Annotated[
    Compression, typer.Option("--compression", "-z", help="The compression codec.")
]


@app.command(epilog="Example: barnabas bench produce --records 1000000 --size 100 --acks all")
def produce(  # noqa: PLR0913 - one parameter an option
    *,
    topic: Topic = DEFAULT_TOPIC,
    records: Annotated[
        int, typer.Option("--records", "-n", min=1, help="Number of records.")
    ] = 1_000_000,
    size: Size = 100,
    rate: Rate = None,
    acks: AcksOption = Acks.ALL,
    compression: CompressionOption = Compression.NONE,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of a new topic.")] = 1,
    linger: Annotated[
        float, typer.Option(min=0, help="Milliseconds to wait for a fuller batch.")
    ] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Maximum bytes of a batch.")] = 1_000_000,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Write records as fast as possible, or at a rate; latency is the time to the response."""
    from barnabas.cli.bench.bench_load import Writing, payloads

    _make_topic(topic, partitions, bootstrap, properties)
    own = {
        **_producer_settings(acks, compression),
        "linger.ms": linger,
        "batch.size": batch,
        # A longer queue does not raise the rate, only the waiting time of each record.
        "queue.buffering.max.messages": 50_000,
    }
    producer = open_producer(bootstrap, properties, own)
    with Progress("records", total=records) as progress:
        tick = _ticker(progress)
        result = Writing(producer, topic).run(payloads(size, Random(SEED)), records, rate, tick)
    _report(result, as_json=as_json)


@app.command(epilog="Example: barnabas bench consume --records 1000000 --json")
def consume(
    *,
    topic: Topic = DEFAULT_TOPIC,
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, help="Number of records; default: all.")
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Read a topic from the beginning."""
    from barnabas.admin.partition_reading import span
    from barnabas.cli.bench.bench_load import read_all

    own = {**_consumer_settings(), "queued.min.messages": 1_000_000}
    consumer = open_consumer(bootstrap, properties, own)
    places = [(topic, number) for number in existing_topic(consumer, bootstrap, topic).partitions]
    spans = {place: span(consumer, place, Beginning(), End()) for place in places}
    there = sum((each.stop or 0) - each.start for each in spans.values())
    if there == 0:
        raise CommandError(f"Topic {topic} is empty; run `barnabas bench produce -t {topic}` first")
    with Progress("records", total=min(there, records or there)) as progress:
        result = read_all(consumer, spans, records, _ticker(progress))
    consumer.close()
    _report(result, as_json=as_json)


@app.command(epilog="Example: barnabas bench latency --records 5000 --rate 500 --acks 1")
def latency(  # noqa: PLR0913 - one parameter an option
    *,
    topic: Topic = DEFAULT_TOPIC,
    records: Annotated[
        int, typer.Option("--records", "-n", min=1, help="Number of records.")
    ] = 1000,
    size: Size = 100,
    rate: Rate = None,
    acks: AcksOption = Acks.ALL,
    compression: CompressionOption = Compression.NONE,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    properties: Properties = None,
) -> None:
    """Write one record at a time and measure the time until it is read back."""
    from barnabas.cli.bench.bench_load import round_trips

    _make_topic(topic, 1, bootstrap, properties)
    settings = {**_producer_settings(acks, compression), "linger.ms": 0}
    producer = open_producer(bootstrap, properties, settings)
    consumer = open_consumer(
        bootstrap, properties, {**_consumer_settings(), "fetch.wait.max.ms": 500}
    )
    with Progress("round trips", total=records) as progress:
        tick = _ticker(progress)
        place = (topic, 0)
        result = round_trips(
            producer, consumer, place, count=records, size=size, rate=rate, tick=tick
        )
    producer.flush()
    consumer.close()
    _report(result, as_json=as_json)


def _make_topic(topic: str, partitions: int, bootstrap: str, properties: list[str] | None) -> None:
    from barnabas.admin.topic_admin import TOPIC_EXISTS, Cluster, is_error

    try:
        Cluster(bootstrap, properties).create(
            topic, partitions=partitions, replicas=None, config={}
        )
    except AdminError as error:
        if not is_error(error, TOPIC_EXISTS):
            raise


def _producer_settings(acks: Acks, compression: Compression) -> dict[str, object]:
    return {
        "acks": acks.value,
        "enable.idempotence": acks is Acks.ALL,
        "compression.type": compression.value,
    }


def _consumer_settings() -> dict[str, object]:
    return {
        "group.id": NO_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }


def _ticker(progress: Progress) -> "Tick":
    return lambda done: progress.update(done, done)


def _report(result: "Result", *, as_json: bool) -> None:
    if as_json:
        print_json(result.as_json())
    else:
        for line in result.lines():
            say(line)
    if result.failed:
        sys.exit(1)
