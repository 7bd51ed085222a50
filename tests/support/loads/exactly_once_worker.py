"""A consume-transform-produce loop with transactions, in a process that may be killed.

    python -m tests.support.loads.exactly_once_worker --bootstrap ... --source ... --target ...

Each transaction takes a batch of the input, writes what it makes of each record to the partition
of the same number, adds the offsets it has read up to, and commits. Some transactions, one in
four, mark what they write and abort; the same input is then read again from where the group
stands, so that offsets that came with an aborted transaction and were kept would be missed.

On stdout it says what it has just done, line by line: begun, written, offsets, then committed or
aborted; failed where a transaction was given up, fenced where new clients had to be made, and
"owns N" where it was given partitions. SIGTERM lets it finish its transaction and leave; SIGUSR1
lets it die, as by SIGKILL, in the middle of the next one.

A call that should last seconds may never return where several brokers are, and one of them goes
away: librdkafka 2.16 waits in `send_offsets_to_transaction` for a coordinator that it has forgotten
(its issues 5511 and 5456). A watch then says "stuck" and starts the process again, as whoever runs
such a loop in earnest must; the transactional id sees to it that nothing is written twice.
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
    # Else librdkafka 2.16 forgets its only broker while that is away, and then waits for its old
    # self: a call of `send_offsets_to_transaction` was seen never to return.
    "metadata.recovery.strategy": "none",
    "log_level": 2,
}


class Voice:
    """Says what was just done, and dies right then where that was asked for."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._last_word = ""
        self._alive = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def still_here(self) -> None:
        """Say nothing, but be heard by the watch."""
        self._alive.set()

    def _watch(self) -> None:
        while self._alive.wait(STUCK_S):
            self._alive.clear()
        self.say("stuck")
        os.execv(sys.executable, sys.orig_argv)

    def doom(self, number: int, frame: object) -> None:
        """Choose the moment to die at (a signal handler)."""
        del number, frame
        self._last_word = self._rng.choice(INSIDE)

    def say(self, word: str) -> None:
        """Tell the process that started this one."""
        sys.stdout.write(f"{word}\n")
        sys.stdout.flush()
        self.still_here()
        if word == self._last_word:
            os.kill(os.getpid(), signal.SIGKILL)


class Loop:
    """One producer and one consumer, until told to end, or until one of them is fenced."""

    def __init__(
        self, options: argparse.Namespace, rng: Random, voice: Voice, ending: threading.Event
    ) -> None:
        self._say = voice.say
        self._still_here = voice.still_here
        self._source: str = options.source
        self._target: str = options.target
        self._rng = rng
        self._ending = ending
        self._moved = False
        self._producer: Any = Producer(producer_settings(options))
        self._consumer: Any = Consumer(consumer_settings(options))

    def run(self) -> None:
        """Work; raise KafkaException where others must take their places."""
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
            # Some of these may belong to another member by now.
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
        """Call until it is done, or fails for another reason than a broker that is away."""
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
        """Go back to where the group stands."""
        for place in self._committed():
            place.offset = max(place.offset, 0)
            try:
                self._consumer.seek(place)
            except KafkaException as problem:
                # A partition that is not fetched yet starts where the group stands by itself.
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
    """Return whether a message is a record, not news; raise where the consumer cannot go on.

    That happens to a static member whose broker was away for longer than its session.
    """
    error = message.error()
    if error is not None and (error.fatal() or error.code() == KafkaError._FATAL):
        raise KafkaException(error)
    return error is None


def producer_settings(options: argparse.Namespace) -> dict[str, object]:
    """Return what the producer is made with."""
    return {
        **CLIENT,
        "bootstrap.servers": options.bootstrap,
        "transactional.id": f"{options.group}-{options.name}",
        "transaction.timeout.ms": options.transaction_timeout_ms,
        "linger.ms": 2,
    }


def consumer_settings(options: argparse.Namespace) -> dict[str, object]:
    """Return what the consumer is made with; a static member is taken back at once."""
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
    """Write down what went wrong, for whoever looks into a failed test."""
    error = problem.args[0]
    sys.stderr.write(f"{error.name()}: {error.str()}\n")
    sys.stderr.flush()


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
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
    voice = Voice(rng)
    signal.signal(signal.SIGUSR1, voice.doom)
    while not ending.is_set():
        try:
            Loop(options, rng, voice, ending).run()
        except KafkaException as problem:
            report(problem)
            voice.say("fenced")


if __name__ == "__main__":
    main()
