"""Tests docs/spark.md: every Python example runs, in order, in one namespace."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.testing.broker import Broker

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.mark.slow
def test_every_example_runs(
    spark: "SparkSession",
    broker: "Broker",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("barnabas.spark.data_source")
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    for example in examples:
        text = example.replace("127.0.0.1:9092", broker.bootstrap).replace(
            'SparkSession.builder.master("local[2]").getOrCreate()', "spark"
        )
        text = text.replace('"lake/', f'"{tmp_path}/lake/').replace(
            '"checkpoints/', f'"{tmp_path}/checkpoints/'
        )
        exec(compile(text, str(PAGE), "exec"), names)
    assert len(examples) >= 10


def test_spark_refuses_a_write_without_a_mode_and_the_page_says_so(
    spark: "SparkSession", sink: str
) -> None:
    from pyspark.errors import AnalysisException

    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    rows = spark.sql("SELECT 'v' AS value")
    with pytest.raises(AnalysisException) as refusal:
        rows.write.format(sink).options(**options).save()
    assert refusal.value.getCondition() == "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
    assert "| `UNSUPPORTED_DATA_SOURCE_SAVE_MODE` | a batch write needs" in PAGE.read_text()
