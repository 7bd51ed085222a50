"""Prints what was compared, and the differences in groups."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from barnabas.model.errors import ErrorCode
from tools.compat_diff.comparing import ABSENT, ERRORS, FOREIGN, TEXTS
from tools.compat_diff.playing import Difference, Played

REQUEST_SHOWN = 600
VALUE_SHOWN = 160
ENTRIES_SHOWN = 6


@dataclass(frozen=True)
class Group:
    """Differences of one kind."""

    api: str
    path: str
    kafka: str
    barnabas: str
    found: tuple[Difference, ...]

    @property
    def versions(self) -> str:
        """The versions in which it was seen."""
        seen = sorted({one.version for one in self.found})
        gapless = seen == list(range(seen[0], seen[-1] + 1)) and len(seen) > 2
        return f"{seen[0]}-{seen[-1]}" if gapless else ", ".join(map(str, seen))

    @property
    def example(self) -> Difference:
        """The one with the shortest request."""
        return min(self.found, key=lambda one: len(one.request))


def shown(path: str, value: object) -> str:
    """Return a value for the report: errors by name, long values cut."""
    if path.rpartition(".")[2] in ERRORS and isinstance(value, int):
        try:
            return f"{ErrorCode(value).name} ({value})"
        except ValueError:
            return f"error {value}"
    if path.rpartition(".")[2] in TEXTS:
        return "a text" if value else repr(value)
    text = FOREIGN.sub("", value if isinstance(value, str) and value else repr(value))
    return text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}..."


def grouped(differences: Iterable[Difference]) -> list[Group]:
    """Group differences of the same API, field and values; the most frequent first."""
    found: dict[tuple[str, str, str, str], list[Difference]] = defaultdict(list)
    for one in differences:
        path = one.found.path
        if path.endswith("[+]"):
            only = "Kafka alone" if one.found.barnabas == ABSENT else "Barnabas alone"
            found[one.api, path, only, ""].append(one)
        else:
            theirs, ours = shown(path, one.found.kafka), shown(path, one.found.barnabas)
            found[one.api, path, theirs, ours].append(one)
    groups = [Group(*key, tuple(members)) for key, members in found.items()]
    return sorted(groups, key=lambda group: (group.api, group.path, -len(group.found)))


def print_report(console: Console, played: Sequence[Played]) -> int:
    """Print the figures and every unexplained group; return the number of these groups."""
    differences = [one for dialogue in played for one in dialogue.differences]
    unexplained = grouped(one for one in differences if one.explained is None)
    for number, group in enumerate(unexplained, 1):
        _print_group(console, number, group)
    sentences: dict[str, int] = defaultdict(int)
    for one in differences:
        if one.explained is not None:
            sentences[one.explained.sentence] += 1
    if sentences:
        console.print("\n[bold]Explained in docs/compatibility.md[/]")
        for sentence, count in sorted(sentences.items(), key=lambda item: -item[1]):
            console.print(f"  {count:6,}  {sentence}", highlight=False, soft_wrap=True)
    answers = sum(one.answers for one in played)
    short = sum(one.cut_short for one in played)
    console.print(
        f"\n{len(played):,} dialogues ({short:,} ended early), {answers:,} pairs of answers, "
        f"{sum(sentences.values()):,} explained differences, "
        f"{sum(len(g.found) for g in unexplained):,} unexplained in {len(unexplained):,} groups",
        highlight=False,
    )
    return len(unexplained)


def _print_group(console: Console, number: int, group: Group) -> None:
    example = group.example
    console.print(
        f"\n[bold]{number}. {group.api}[/] v{group.versions}  {len(group.found)} times",
        highlight=False,
    )
    if group.barnabas:
        console.print(f"   {group.path}", markup=False, highlight=False)
        console.print("   Kafka     ", group.kafka, markup=False, highlight=False, soft_wrap=True)
        console.print(
            "   Barnabas  ", group.barnabas, markup=False, highlight=False, soft_wrap=True
        )
    else:
        entries = {str(v) for one in group.found for v in one.found[1:] if v != ABSENT}
        sample = sorted({FOREIGN.sub("", entry) for entry in entries})[:ENTRIES_SHOWN]
        console.print(f"   {group.path}  {group.kafka}: {sample}", markup=False, soft_wrap=True)
    console.print(
        f"   {example.dialogue}, step {example.step}, v{example.version}:",
        example.request[:REQUEST_SHOWN],
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def write_json(path: Path, played: Sequence[Played]) -> None:
    """Write all differences as JSON."""
    document = {
        "dialogues": len(played),
        "answers": sum(one.answers for one in played),
        "differences": [
            {
                "dialogue": one.dialogue,
                "step": one.step,
                "api": one.api,
                "version": one.version,
                "path": one.found.path,
                "kafka": repr(one.found.kafka),
                "barnabas": repr(one.found.barnabas),
                "explained": one.explained.sentence if one.explained else None,
                "request": one.request,
            }
            for dialogue in played
            for one in dialogue.differences
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
