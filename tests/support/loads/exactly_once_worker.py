"""A consume-transform-produce loop with transactions, in a process that may be killed.

    python -m tests.support.loads.exactly_once_worker --bootstrap ... --source ... --target ...

Each transaction takes a batch of the input, writes one output record for each input record to the
partition with the same number, adds the input offsets, and commits. Every fourth transaction marks
its output and aborts. The worker then reads the same input again from the committed offsets of the
group, so that offsets of an aborted transaction would cause missing records.

It prints its steps on stdout, line by line: begun, written, offsets, then committed or aborted;
failed if a transaction failed, fenced if new clients had to be created, and "owns N" when it got
partitions. SIGTERM lets it finish its transaction and leave. SIGUSR1 lets it die, as by SIGKILL, in
the middle of the next transaction.

If one of several brokers stops, a call that should last seconds may never return: librdkafka 2.16
waits in `send_offsets_to_transaction` for a coordinator that it has forgotten (its issues 5511 and
5456). A watchdog then prints "stuck" and restarts the process, as an operator of such a loop must.
The transactional id ensures that no record is written twice.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.support.loads.exactly_once import ABORTED, transformed

BATCH_MAX = 100
CALL_TIMEOUT_S = 5.0
POLL_S = 0.05
STUCK_S = 20.0
ABORTED_SHARE = 0.25
INSIDE = ("begun", "written", "offsets")
CLIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    # Otherwise librdkafka 2.16 forgets its only broker while the broker is down, and waits for it
    # forever: a call of `send_offsets_to_transaction` never returned.
    "metadata.recovery.strategy": "none",
    "log_level": 2,
}


class StepReporter:
    """Reports each step, and dies right after it if requested."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._last_word = ""
        self._alive = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def still_here(self) -> None:
        """Reset the watchdog without printing a line."""
        self._alive.set()

    def _watch(self) -> None:
        while self._alive.wait(STUCK_S):
            self._alive.clear()
        self.print_step("stuck")
        os.execv(sys.executable, sys.orig_argv)

    def die_in_next_step(self, number: int, frame: object) -> None:
        """Draw the step to die at (a signal handler)."""
        del number, frame
        self._last_word = self._rng.choice(INSIDE)

    def print_step(self, word: str) -> None:
        """Print a line for the parent process."""
        sys.stdout.write(f"{word}\n")
        sys.stdout.flush()
        self.still_here()
        if word == self._last_word:
            os.kill(os.getpid(), signal.SIGKILL)


class Loop:
    """Uses one producer and one consumer, until stopped or until one of them is fenced."""

    def __init__(
        self, options: argparse.Namespace, rng: Random, voice: StepReporter, ending: threading.Event
    ) -> None:
        self._say = voice.print_step
        self._still_here = voice.still_here
        self._source: str = options.source
        self._target: str = options.target
        self._rng = rng
        self._ending = ending
        self._moved = False
        self._producer: Any = Producer(producer_settings(options))
        self._consumer: Any = Consumer(consumer_settings(options))

    def run(self) -> None:
        """Work; raise KafkaException if new clients are needed."""
        try:
            self._until_done(self._producer.init_transactions)
            moved = self._note_move
            self._consumer.subscribe([self._source], on_assign=moved, on_revoke=moved)
            while not self._ending.is_set():
                self._turn()
        finally:
            self._consumer.close()

    def _note_move(self, consumer: object, places: object) -> None:
        del consumer, places
        self._moved = True

    def _turn(self) -> None:
        self._still_here()
        self._moved = False
        messages = self._consumer.consume(BATCH_MAX, POLL_S)
        batch = [message for message in messages if readable(message)]
        if self._moved:
            # Some of these partitions may belong to another member by now.
            self._rewind()
            self._say(f"owns {len(self._consumer.assignment())}")
        elif batch:
            self._work(batch)

    def _work(self, batch: list[Message]) -> None:
        aborting = self._rng.random() < ABORTED_SHARE
        try:
            self._write(batch, ABORTED if aborting else b"")
            if not aborting:
                self._until_done(self._producer.commit_transaction)
                self._say("committed")
                return
        except KafkaException as problem:
            report(problem)
            self._say("failed")
        self._until_done(self._producer.abort_transaction)
        if aborting:
            self._say("aborted")
        self._rewind()

    def _write(self, batch: list[Message], mark: bytes) -> None:
        self._producer.begin_transaction()
        self._say("begun")
        for message in batch:
            value = mark + transformed(message.value())
            self._producer.produce(self._target, value, partition=message.partition())
        self._producer.flush(CALL_TIMEOUT_S)
        self._say("written")
        ends = {message.partition(): message.offset() + 1 for message in batch}
        offsets = [TopicPartition(self._source, number, end) for number, end in ends.items()]
        member = self._consumer.consumer_group_metadata()
        self._until_done(
            lambda timeout: self._producer.send_offsets_to_transaction(offsets, member, timeout)
        )
        self._say("offsets")

    def _until_done(self, call: Callable[[float], object]) -> None:
        """Repeat a call until it succeeds, or fails with a non-retriable error."""
        while True:
            self._still_here()
            try:
                call(CALL_TIMEOUT_S)
            except KafkaException as problem:
                if not problem.args[0].retriable():
                    raise
                report(problem)
            else:
                return

    def _rewind(self) -> None:
        """Go back to the committed offsets of the group."""
        for place in self._committed():
            place.offset = max(place.offset, 0)
            try:
                self._consumer.seek(place)
            except KafkaException as problem:
                # A partition that is not fetched yet starts at its committed offset by itself.
                if problem.args[0].code() != KafkaError._STATE:
                    raise

    def _committed(self) -> list[TopicPartition]:
        while not self._ending.is_set():
            self._still_here()
            try:
                places = self._consumer.assignment()
                found: list[TopicPartition] = self._consumer.committed(places, CALL_TIMEOUT_S)
            except KafkaException as problem:
                report(problem)
                self._ending.wait(POLL_S)
            else:
                return found
        return []


def readable(message: Message) -> bool:
    """Return whether a message is a record and not an event; raise if the consumer cannot continue.

    A static member cannot continue if its broker was down for longer than its session.
    """
    error = message.error()
    if error is not None and (error.fatal() or error.code() == KafkaError._FATAL):
        raise KafkaException(error)
    return error is None


def producer_settings(options: argparse.Namespace) -> dict[str, object]:
    """Return the configuration of the producer."""
    return {
        **CLIENT,
        "bootstrap.servers": options.bootstrap,
        "transactional.id": f"{options.group}-{options.name}",
        "transaction.timeout.ms": options.transaction_timeout_ms,
        "linger.ms": 2,
    }


def consumer_settings(options: argparse.Namespace) -> dict[str, object]:
    """Return the configuration of the consumer; a static member rejoins without a rebalance."""
    classic = {
        "group.instance.id": options.name,
        "session.timeout.ms": options.session_timeout_ms,
        "heartbeat.interval.ms": options.session_timeout_ms // 6,
    }
    return {
        **CLIENT,
        **(classic if options.protocol == "classic" else {}),
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "group.protocol": options.protocol,
        "client.id": options.name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 50,
    }


def report(problem: KafkaException) -> None:
    """Write an error to stderr, for the analysis of a failed test."""
    error = problem.args[0]
    sys.stderr.write(f"{error.name()}: {error.str()}\n")
    sys.stderr.flush()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="exactly_once_worker")
    for name in ("bootstrap", "source", "target", "group", "name"):
        made.add_argument(f"--{name}", required=True)
    made.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    made.add_argument("--session-timeout-ms", type=int, default=6000)
    made.add_argument("--transaction-timeout-ms", type=int, default=10_000)
    made.add_argument("--seed", type=int, default=0)
    return made


def main() -> None:
    """Work until SIGTERM."""
    options = parser().parse_args()
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: ending.set())
    rng = Random(options.seed)
    voice = StepReporter(rng)
    signal.signal(signal.SIGUSR1, voice.die_in_next_step)
    while not ending.is_set():
        try:
            Loop(options, rng, voice, ending).run()
        except KafkaException as problem:
            report(problem)
            voice.print_step("fenced")


if __name__ == "__main__":
    main()
