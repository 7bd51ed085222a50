"""Tests tables on topics: CREATE TABLE, INSERT INTO, saveAsTable, and the topics database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from barnabas.spark import register, register_topics, save_as_table
from barnabas.testing.broker import Broker
from tests.support.loads.topic_reading import committed_records, create_topic


@pytest.fixture
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """A separate session, without the tables of a test when it is over."""
    session = spark.newSession()
    register(session)
    yield session
    for table in session.catalog.listTables():
        if not table.isTemporary:
            session.sql(f"DROP TABLE {table.name}")


def options(broker: Broker, topic: str, more: str = "") -> str:
    return f"OPTIONS (`kafka.bootstrap.servers` '{broker.bootstrap}', topic '{topic}'{more})"


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.sql(query).collect())


TEXT = ", columns 'key STRING, value STRING'"


def test_a_table_is_written_and_read_by_its_name(spark: SparkSession, broker: Broker) -> None:
    create_topic(broker.bootstrap, "orders", 2)
    spark.sql(f"CREATE TABLE orders USING barnabas {options(broker, 'orders', TEXT)}")
    spark.sql("INSERT INTO orders (key, value) VALUES ('a', '1'), ('b', '2')")
    more = spark.sql("SELECT '3' AS value, 'c' AS key")
    more.writeTo("orders").append()
    more.write.format("barnabas").mode("append").saveAsTable("orders")

    assert rows(spark, "SELECT key, value FROM orders WHERE key > 'a'") == [
        ("b", "2"),
        ("c", "3"),
        ("c", "3"),
    ]
    assert spark.read.table("orders").count() == 4
    with pytest.raises(Exception, match="A topic cannot be overwritten"):
        spark.sql("INSERT OVERWRITE orders (key, value) VALUES ('a', '1')")


def test_a_table_has_the_columns_of_sparks_own_connector(
    spark: SparkSession, broker: Broker
) -> None:
    create_topic(broker.bootstrap, "records")
    spark.sql(f"CREATE TABLE records USING barnabas {options(broker, 'records')}")
    spark.sql("INSERT INTO records (key, value) VALUES (X'01', X'02')")

    (found,) = spark.table("records").collect()
    assert (found.key, found.value, found.topic) == (b"\x01", b"\x02", "records")
    assert (found.partition, found.offset, found.timestampType) == (0, 0, 0)


def test_rows_of_one_table_go_to_the_topic_of_another(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    more = f"{TEXT}, startingOffsets 'earliest'"
    for name in ("origin", "target"):
        create_topic(broker.bootstrap, name)
        spark.sql(f"CREATE TABLE {name} USING barnabas {options(broker, name, more)}")
    spark.sql("INSERT INTO origin (key, value) VALUES ('a', '1')")
    spark.sql("INSERT INTO target SELECT * FROM origin")
    assert [len(committed_records(broker.bootstrap, name)) for name in ("origin", "target")] == [
        1,
        1,
    ]

    stream = spark.readStream.table("origin").writeStream.trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(tmp_path))
    with pytest.raises(Exception, match=r"leave it out with \.drop\('topic'\)"):
        stream.toTable("target").awaitTermination()


def test_a_saved_table_is_read_back(spark: SparkSession, broker: Broker) -> None:
    create_topic(broker.bootstrap, "saved")
    told = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "saved"}
    save_as_table(spark.sql("SELECT 'a' AS key, '1' AS value"), "saved", told)
    save_as_table(spark.sql("SELECT 'b' AS key, '2' AS value"), "saved", told)

    assert rows(spark, "SELECT key, value FROM saved") == [("a", "1"), ("b", "2")]


def test_where_spark_keeps_no_options_the_error_says_what_to_type(
    spark: SparkSession, broker: Broker
) -> None:
    create_topic(broker.bootstrap, "listed")
    told = options(broker, "listed")
    spark.sql(f"CREATE TABLE listed (key STRING, value STRING) USING barnabas {told}")
    advice = "CREATE TABLE t USING barnabas OPTIONS"
    with pytest.raises(Exception, match=advice):
        spark.sql("SELECT * FROM listed").collect()
    with pytest.raises(Exception, match=advice):
        spark.sql("INSERT INTO listed VALUES ('a', '1')")
    with pytest.raises(Exception, match=advice):
        spark.sql(f"CREATE TABLE selected USING barnabas {told} AS SELECT 'a' AS value")

    here = told.replace("OPTIONS", "WITH")
    spark.sql(f"INSERT INTO listed {here} VALUES ('a', '1')")
    assert rows(spark, f"SELECT * FROM listed {here}") == [("a", "1")]


def test_a_view_declares_its_columns(spark: SparkSession, broker: Broker) -> None:
    create_topic(broker.bootstrap, "viewed")
    told = options(broker, "viewed")
    spark.sql(f"CREATE TEMPORARY VIEW viewed (offset BIGINT, value STRING) USING barnabas {told}")
    spark.sql("INSERT INTO viewed (value) VALUES ('x')")
    assert rows(spark, "SELECT * FROM viewed") == [(0, "x")]


def test_a_database_has_a_table_for_each_topic(spark: SparkSession, broker: Broker) -> None:
    with Broker() as other:
        brokers = {"kafka.bootstrap.servers": other.bootstrap}
        for name in ("clicks", "shop.Carts"):
            create_topic(other.bootstrap, name)
        assert register_topics(spark, brokers).tables == {
            "clicks": "clicks",
            "shop_carts": "shop.Carts",
        }
        spark.sql("INSERT INTO barnabas.clicks (key, value) VALUES ('a', '1')")
        assert rows(spark, "SELECT key, value, offset FROM barnabas.clicks") == [("a", "1", 0)]

        create_topic(other.bootstrap, "views")
        admin = AdminClient({"bootstrap.servers": other.bootstrap})
        admin.delete_topics(["shop.Carts"])["shop.Carts"].result(30)
        register_topics(spark, brokers)
        listed = spark.sql("SHOW TABLES IN barnabas").where("NOT isTemporary").collect()
        assert sorted(row.tableName for row in listed) == ["clicks", "views"]
    spark.sql("DROP DATABASE barnabas CASCADE")
