"""Tests CREATE SOURCE, STREAM and FUNCTION: windows, joins, dead letters, restarts, refusals."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from barnabas.spark import register
from barnabas.spark.sql.lag import LagReader
from barnabas.spark.sql.run_status import Status, read_status
from barnabas.spark.sql.statement_runner import Runner, Script, StreamFailedError
from barnabas.spark.sql.statements import StatementError, parse
from barnabas.spark.sql.streams import Place
from barnabas.testing.broker import Broker
from tests.support.loads.topic_reading import committed_records, create_topic

Run = Callable[[str], list[list[tuple[object, ...]]]]
SOURCES = """
CREATE SOURCE orders (id BIGINT NOT NULL, customer STRING, amount DOUBLE, at TIMESTAMP)
FROM TOPIC {topic} OPTIONS (watermark 'at 10 seconds');
"""


def never(text: str) -> tuple[str, int | None]:
    return text, 0


def produce(broker: Broker, topic: str, values: Iterable[object]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for each in values:
        producer.produce(topic, each if isinstance(each, bytes) else json.dumps(each).encode())
    assert producer.flush(30) == 0


def order(number: int, customer: str, amount: float, at: str) -> dict[str, object]:
    return {"id": number, "customer": customer, "amount": amount, "at": f"2026-01-01T10:{at}Z"}


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """A separate session, with its own views and functions."""
    session = spark.newSession()
    register(session)
    return session


@pytest.fixture
def run(spark: SparkSession, broker: Broker, tmp_path: Path) -> Run:
    """Run statements to the end of the input; return the rows of those that have rows."""

    def run(text: str) -> list[list[tuple[object, ...]]]:
        runner = Runner(spark, script(text, tmp_path), place(broker, tmp_path), never)
        return [sorted(answer.rows) for answer in runner.execute()]

    return run


def script(text: str, folder: Path) -> Script:
    return Script(name="shop.sql", folder=folder, statements=parse(text))


def place(broker: Broker, folder: Path, *, once: bool = True) -> Place:
    brokers = {"kafka.bootstrap.servers": broker.bootstrap}
    return Place(folder=folder, brokers=brokers, trigger="100 milliseconds", once=once)


def values(broker: Broker, topic: str) -> list[object]:
    found = committed_records(broker.bootstrap, topic)
    return sorted((json.loads(each.value or b"") for each in found), key=str)


@pytest.mark.slow
def test_windows_joins_functions_and_dead_letters(run: Run, broker: Broker, tmp_path: Path) -> None:
    for name in ("bought", "bought-dlq", "paid-for", "revenue"):
        create_topic(broker.bootstrap, name)
    (tmp_path / "sql_stream_functions.py").write_text(
        "RATE = 1.25\n\ndef net(amount: float) -> float:\n    return amount / RATE\n"
    )
    produce(
        broker,
        "bought",
        [
            order(1, "ann", 10, "00:05"),
            order(2, "bob", 20, "00:50"),
            b"{broken",
            order(3, "ann", 5, "00:59"),
            order(4, "ann", 1, "09:00"),
        ],
    )
    produce(broker, "paid-for", [{"order_id": 2, "paid": "2026-01-01T10:01:00Z"}])

    (paid,) = run(
        SOURCES.format(topic="bought")
        + """
        CREATE SOURCE payments (order_id BIGINT, paid TIMESTAMP) FROM TOPIC `paid-for`
        OPTIONS (watermark 'paid 10 seconds', deadLetterTopic 'none');
        CREATE FUNCTION net FROM 'sql_stream_functions';
        CREATE STREAM revenue OPTIONS (key 'customer') AS
        SELECT customer, window.start AS minute, sum(net(amount)) AS net
        FROM orders GROUP BY customer, window(at, '1 minute');
        CREATE STREAM paid INTO TABLE paid AS
        SELECT id, customer FROM orders JOIN payments
        ON id = order_id AND paid BETWEEN at AND at + INTERVAL 5 MINUTES;
        SELECT * FROM paid;
        """
    )

    assert paid == [(2, "bob")]
    assert values(broker, "revenue") == [
        {"customer": "ann", "minute": "2026-01-01T10:00:00.000Z", "net": 12.0},
        {"customer": "bob", "minute": "2026-01-01T10:00:00.000Z", "net": 16.0},
    ]
    assert {each.key for each in committed_records(broker.bootstrap, "revenue")} == {b"ann", b"bob"}
    (letter,) = committed_records(broker.bootstrap, "bought-dlq")
    assert letter.value == b"{broken"
    assert dict(letter.headers)["dlq.reason"] == b"bad-json"

    status = read_status(tmp_path)
    assert [(each.name, each.state) for each in status.streams] == [
        ("orders_dead_letters", "done"),
        ("revenue", "done"),
        ("paid", "done"),
    ]
    produce(broker, "bought", [order(5, "ann", 1, "09:30")])
    lags = LagReader({"kafka.bootstrap.servers": broker.bootstrap}).lags(status.streams)
    assert lags == {"orders_dead_letters": 1, "revenue": 1, "paid": 1}


@pytest.mark.slow
def test_a_stream_continues_where_it_was(run: Run, broker: Broker, tmp_path: Path) -> None:
    for name in ("steps", "steps-dlq", "doubled"):
        create_topic(broker.bootstrap, name)
    text = """
    CREATE SOURCE steps (n BIGINT) FROM TOPIC steps;
    CREATE STREAM doubled AS SELECT n, n * 2 AS twice FROM steps;
    """
    produce(broker, "steps", [{"n": 1}, {"n": 2}])
    run(text)
    # As if the driver had died after the rows were written and before Spark noted it.
    commits = tmp_path / "checkpoints" / "doubled" / "commits"
    for each in (commits / "0", commits / ".0.crc"):
        each.unlink(missing_ok=True)
    produce(broker, "steps", [{"n": 3}])
    run(text)

    assert values(broker, "doubled") == [{"n": n, "twice": 2 * n} for n in (1, 2, 3)]


def test_a_running_stream_is_stopped_after_its_batch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    for name in ("ticks", "ticks-dlq", "tocks"):
        create_topic(broker.bootstrap, name)
    text = """
    CREATE SOURCE ticks (n BIGINT) FROM TOPIC ticks OPTIONS (deadLetterTopic 'none');
    CREATE STREAM tocks AS SELECT n FROM ticks;
    """
    runner = Runner(spark, script(text, tmp_path), place(broker, tmp_path, once=False), never)
    assert list(runner.execute()) == []
    produce(broker, "ticks", [{"n": 1}])
    states = []

    def show(status: Status) -> None:
        (stream,) = status.streams
        states.append(stream.state)
        assert read_status(tmp_path).streams[0].state == stream.state
        if stream.rows == 1:
            runner.request_stop()

    runner.follow(show, 0.0)

    assert states[0] == "running"
    assert states[-1] == "stopped"
    assert values(broker, "tocks") == [{"n": 1}]


@pytest.mark.parametrize(
    ("statement", "line", "advice"),
    [
        ("SELECT id FROM orders", 6, "type: CREATE STREAM name AS SELECT"),
        ("CREATE STREAM s AS\nSELECT nothing FROM orders", 7, "nothing"),
        ("CREATE STREAM s AS SELECT 1 AS value", 6, "type INSERT INTO"),
        ("CREATE STREAM s OPTIONS (key 'k') AS SELECT id FROM orders", 6, "choose from id"),
        ("CREATE SOURCE s (a WRONG) FROM TOPIC t", 6, "type: (id BIGINT NOT NULL"),
        ("CREATE SOURCE s FROM TOPIC t OPTIONS (watermark 'x')", 6, "such as 'timestamp 10 sec"),
        ("CREATE SOURCE s FROM TOPIC t OPTIONS (startOffsets 'x')", 6, "did you mean starting"),
        ("SELEC 1", 6, "Syntax error"),
    ],
)
def test_a_statement_that_cannot_run_is_named_by_its_line(
    run: Run, broker: Broker, statement: str, line: int, advice: str
) -> None:
    options = "OPTIONS (deadLetterTopic 'none')"
    text = f"CREATE SOURCE orders (id BIGINT)\nFROM TOPIC t\n{options};\n\n\n{statement}"
    with pytest.raises(StatementError) as caught:
        run(text)
    assert caught.value.line == line
    assert advice in caught.value.sentence


def test_a_stream_that_cannot_continue_stops_the_run(run: Run, tmp_path: Path) -> None:
    text = """
    CREATE SOURCE nothing (id BIGINT) FROM TOPIC nowhere OPTIONS (deadLetterTopic 'none');
    CREATE STREAM s AS SELECT id FROM nothing;
    """
    with pytest.raises(
        StreamFailedError,
        match=r"(?s)line 3: stream s stopped: .*There is no topic or partition nowhere",
    ):
        run(text)
    assert read_status(tmp_path).streams[0].state == "failed"
