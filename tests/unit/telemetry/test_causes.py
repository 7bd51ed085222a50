"""Tests why a job stopped, according to Spark's messages."""

import pytest

from barnabas.telemetry.findings.causes import Remedy, explain

STREAM = "[STREAM_FAILED] Query [id = 1-a, runId = 2-b] terminated with exception: "
WRAPPED = (
    STREAM
    + """Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times
Traceback (most recent call last):
  File "/x/fetching.py", line 12, in fetch
ConnectionResetError: [Errno 104] Connection reset by peer

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/worker.py", line 3, in main
{cause}

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
Caused by: java.io.IOException: something else
\tat java.base/x.y(Z.java:1) SQLSTATE: XXKST"""
)


@pytest.mark.parametrize(
    ("cause", "sentence", "remedy"),
    [
        (
            "barnabas.spark.query_errors.FetchError: 127.0.0.1:9092 does not answer; start it",
            "127.0.0.1:9092 does not answer; start it",
            Remedy.RETRY,
        ),
        (
            "barnabas.wire.wire_failures.LinkError: No broker answered at a:1; start one",
            "No broker answered at a:1; start one",
            Remedy.RETRY,
        ),
        (
            "barnabas.spark.query_errors.DataLossError: gpu-telemetry-0 lost 5 to 9",
            "gpu-telemetry-0 lost 5 to 9",
            Remedy.GIVE_UP,
        ),
        (
            "barnabas.spark.sink.batch_sending.DeliveryError: the transaction was ended",
            "the transaction was ended",
            Remedy.RETRY_A_FEW_TIMES,
        ),
        ("KeyError: 'x'", "KeyError: 'x'", Remedy.GIVE_UP),
        ("OSError: [Errno 28] No space left", "OSError: [Errno 28] No space left", Remedy.GIVE_UP),
        (
            'cimpl.KafkaException: KafkaError{code=_TRANSPORT,val=-195,str="gone"}',
            'KafkaException: KafkaError{code=_TRANSPORT,val=-195,str="gone"}',
            Remedy.RETRY,
        ),
    ],
)
def test_the_innermost_python_error_is_the_cause(cause: str, sentence: str, remedy: Remedy) -> None:
    found = explain(WRAPPED.format(cause=cause))

    assert (found.sentence, found.remedy) == (sentence, remedy)


def test_a_process_that_died_is_tried_again_a_few_times() -> None:
    text = (
        STREAM + "Job aborted: org.apache.spark.SparkException: Python worker exited unexpectedly"
    )

    found = explain(text + " (crashed)\n\tat x.y(Z.scala:1)\nCaused by: java.io.EOFException\n")

    assert found.remedy is Remedy.RETRY_A_FEW_TIMES
    assert found.sentence.startswith("Job aborted")


def test_without_python_the_first_words_of_sparks_error_are_reported() -> None:
    found = explain(STREAM + "Table is gone " + "x" * 1000 + "\n\tat x.y(Z.scala:1)")

    assert found.sentence.startswith("Table is gone xxx")
    assert len(found.sentence) < 500
    assert found.remedy is Remedy.GIVE_UP
    assert explain("").sentence == "Spark gave no reason"
