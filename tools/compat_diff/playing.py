"""Runs a dialogue with both brokers and collects the differences between their responses."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from barnabas.protocol.apis import APIS
from barnabas.protocol.messages.fetch import FetchRequest
from tools.compat_diff.comparing import Found, Pairs, compare
from tools.compat_diff.explaining import Explained, explanation
from tools.compat_diff.settling import settle
from tools.compat_diff.sides import Request, Side
from tools.compat_diff.steps import (
    Answer,
    Ask,
    Await,
    Dialogue,
    Pause,
    Raw,
    Scene,
    Step,
    Talk,
    brief,
)

LOOKS = 6
LOOK_AGAIN_AFTER_S = 0.05
READING = (
    "ListOffsets",
    "Metadata",
    "OffsetFetch",
    "Describe",
    "List",
    "FindCoordinator",
    "OffsetForLeaderEpoch",
    "ConsumerGroupDescribe",
)
OUTCOME = "(outcome)"


@dataclass(frozen=True)
class Difference:
    """One different field of a response, and where it was found."""

    dialogue: str
    step: int
    api: str
    version: int
    found: Found
    request: str
    explained: Explained | None


@dataclass
class Played:
    """The result of one dialogue."""

    name: str
    answers: int = 0
    differences: list[Difference] = field(default_factory=list)
    cut_short: bool = False
    """Whether it ended at a difference after which the brokers' states differ."""


class Player:
    """Runs dialogues with two brokers."""

    def __init__(
        self, kafka: tuple[str, int], barnabas: tuple[str, int], table: tuple[Explained, ...]
    ) -> None:
        self._kafka = kafka
        self._barnabas = barnabas
        self._table = table

    def play(self, name: str, dialogue: Dialogue, scene: Scene, *, strict: bool = False) -> Played:
        """Run a dialogue to its end; a strict one ends at its first unexplained difference."""
        addresses = (self._kafka, self._barnabas)
        playing = _Playing(name, dialogue, scene, addresses, self._table, strict=strict)
        try:
            playing.run()
        finally:
            playing.close()
        return playing.played


class _Playing:
    """One running dialogue."""

    def __init__(
        self,
        name: str,
        dialogue: Dialogue,
        scene: Scene,
        addresses: tuple[tuple[str, int], tuple[str, int]],
        table: tuple[Explained, ...],
        *,
        strict: bool,
    ) -> None:
        self.played = Played(name)
        self._strict = strict
        self._sides = (Side(addresses[0]), Side(addresses[1]))
        self._talks = (dialogue(scene), dialogue(scene))
        self._pairs = Pairs(scene.prefix)
        self._table = table
        self._held: dict[str, Request] = {}
        self._number = 0

    def run(self) -> None:
        """Continue until one of the two generators ends."""
        steps = [next(talk, None) for talk in self._talks]
        while steps[0] is not None and steps[1] is not None:
            self._number += 1
            if self._strict and self._asks_apart(steps[0], steps[1]):
                self.played.cut_short = True
                return
            answers = self._take(steps[0], steps[1])
            if self._strict and self._is_apart():
                self.played.cut_short = True
                return
            steps = [
                proceed(talk, answer) for talk, answer in zip(self._talks, answers, strict=True)
            ]

    def close(self) -> None:
        """Close the connections to both brokers."""
        for talk in self._talks:
            talk.close()
        for side in self._sides:
            side.close()

    def _asks_apart(self, kafka_step: Step, barnabas_step: Step) -> bool:
        """Return whether the two brokers would get different requests.

        Random requests use ids that each broker returned. An earlier difference that is explained
        may lead to another request here.
        """
        if not isinstance(kafka_step, Ask) or not isinstance(barnabas_step, Ask):
            return False
        asked = (kafka_step.request, barnabas_step.request)
        return bool(compare(*asked, kafka_step.version, self._pairs))

    def _is_apart(self) -> bool:
        return any(d.explained is None or d.explained.diverges for d in self.played.differences)

    def _take(self, kafka_step: Step, barnabas_step: Step) -> tuple[Answer, Answer]:
        """Run one step with both brokers; return their responses."""
        nothing = Answer(None)
        if isinstance(kafka_step, Pause):
            time.sleep(kafka_step.milliseconds / 1000)
            return nothing, nothing
        if isinstance(kafka_step, Await):
            asked = self._held.pop(kafka_step.connection)
            return self._receive(asked, asked)
        assert isinstance(barnabas_step, Ask | Raw), "a dialogue must take the same steps twice"
        self._sides[0].send(kafka_step)
        self._sides[1].send(barnabas_step)
        if kafka_step.held:
            self._held[kafka_step.connection] = kafka_step
            return nothing, nothing
        return self._receive(kafka_step, barnabas_step)

    def _receive(self, kafka_step: Request, barnabas_step: Request) -> tuple[Answer, Answer]:
        answers = tuple(side.receive(kafka_step.connection) for side in self._sides)
        kafka, barnabas = answers
        settle(self._sides[0], kafka_step, kafka)
        settle(self._sides[1], barnabas_step, barnabas)
        found = self._compare(kafka_step, kafka, barnabas)
        looks = LOOKS if is_reading(kafka_step) else 0
        while looks and any(one.explained is None for one in self._explained(kafka_step, found)):
            looks -= 1
            time.sleep(LOOK_AGAIN_AFTER_S)
            kafka = self._sides[0].ask(kafka_step)
            barnabas = self._sides[1].ask(barnabas_step)
            found = self._compare(kafka_step, kafka, barnabas)
        self.played.answers += 1
        self.played.differences += self._explained(kafka_step, found)
        return kafka, barnabas

    def _compare(self, step: Request, kafka: Answer, barnabas: Answer) -> list[Found]:
        if kafka.message is None or barnabas.message is None:
            if kafka.outcome == barnabas.outcome:
                return []
            return [Found(OUTCOME, kafka.outcome or "an answer", barnabas.outcome or "an answer")]
        return compare(kafka.message, barnabas.message, step.version, self._pairs)

    def _explained(self, step: Request, found: list[Found]) -> list[Difference]:
        api = api_name(step)
        return [
            Difference(
                dialogue=self.played.name,
                step=self._number,
                api=api,
                version=step.version,
                found=one,
                request=brief(step.request or step.frame),
                explained=explanation(
                    self._table, api, step.version, step.request, one, drawn=self._strict
                ),
            )
            for one in found
        ]


def proceed(talk: Talk, answer: Answer) -> Step | None:
    """Send a response to the generator; return its next step, or None at its end."""
    try:
        return talk.send(answer)
    except StopIteration:
        return None


def is_reading(step: Request) -> bool:
    """Return whether repeating a request is harmless: a difference may disappear in a moment."""
    request = step.request
    if isinstance(request, FetchRequest):
        return step.version < 7 or request.session_epoch == -1
    return api_name(step).startswith(READING)


def api_name(step: Request) -> str:
    """Return the name of the API; an unknown API has its number."""
    facts = APIS.get(step.api_key)
    return facts.name if facts else f"API {step.api_key}"


def scenes(seed: int, run: int = 0, first: int = 1) -> Iterator[Scene]:
    """Yield scenes, each with its own names."""
    for number in count(first):
        yield Scene(number, seed, run)
