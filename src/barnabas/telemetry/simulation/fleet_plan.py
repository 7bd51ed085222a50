"""Plans a simulated fleet: hosts, jobs, cards, and their faults.

Healthy jobs take whole hosts, so that each card of theirs has peers in its pod. Faults of a
whole job (idle, starved ...) go to small jobs on the remaining hosts. Faults of single cards
(thermal, XIDs ...) are spread over the healthy hosts, at most a quarter of a host, so that
the median of a card's peers stays healthy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from barnabas.telemetry.simulation.fleet_settings import JOB_FAULTS, Fault, FleetSettings

HOST_CARDS = 8
HEALTHY_HOSTS = (1, 1, 2, 4)
SMALL_JOBS = (1, 2, 4)
NAMESPACES = ("research", "vision", "speech", "search", "platform")
TRAINING = ("llama-pretrain", "diffusion-train", "speech-train", "ranker-train")
SERVING = "embedding-batch"
TRAINING_SHARE = 0.75


@dataclass(frozen=True)
class Model:
    """A model of card."""

    name: str
    memory_mib: float
    power_limit_w: float
    max_sm_clock_mhz: float
    mem_clock_mhz: float


H200 = Model("NVIDIA H200", 143_771, 700, 1980, 3201)
MODELS = (
    H200,
    Model("NVIDIA H100 80GB HBM3", 81_559, 700, 1980, 2619),
    Model("NVIDIA A100-SXM4-80GB", 81_920, 400, 1410, 1593),
)
MODEL_SHARES = (0.6, 0.3, 0.1)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Cards that work in lockstep."""

    name: str
    """Empty for cards that no job uses."""
    namespace: str
    cards: range
    model: Model
    phase: str
    """The phase of the healthy job."""
    memory_share: float
    trace_offset: int
    fault: Fault | None = None


@dataclass(frozen=True, kw_only=True)
class Card:
    """One GPU."""

    gpu_id: str
    host: int
    index: int
    model: Model
    namespace: str
    pod: str
    job: int

    @property
    def hostname(self) -> str:
        """The name of its host."""
        return f"gpu-node-{self.host:04d}"

    @property
    def device(self) -> str:
        """The name of the card on its host."""
        return f"nvidia{self.index}"


@dataclass(frozen=True, kw_only=True)
class Affliction:
    """A fault of one card from a tick up to another, exclusive."""

    card: int
    fault: Fault
    begin: int
    end: int
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The plan of a fleet."""

    jobs: list[Job]
    cards: list[Card]
    afflictions: list[Affliction]
    host_offsets_ms: list[int]
    """When in an interval a host samples."""
    late_host: int | None


def make_plan(settings: FleetSettings) -> Plan:
    """Draw a fleet from the seed."""
    rng = np.random.default_rng([settings.seed, 1])
    kinds = _kinds(settings, rng)
    share = settings.gpus * settings.fault_share / max(len(kinds), 1)
    each = max(1, round(share)) if kinds else 0
    jobs = list(_jobs(settings.gpus, kinds, each, rng))
    cards = [card for number, job in enumerate(jobs) for card in _cards(number, job, rng)]
    hosts = cards[-1].host + 1
    whole = sum(len(job.cards) for job in jobs if job.fault is None) // HOST_CARDS
    late = int(rng.integers(whole)) if settings.late_host and whole >= 4 else None
    afflictions = list(_job_afflictions(jobs, settings, rng))
    afflictions += _spread_faults(kinds, each, whole, late, settings, rng)
    offsets = rng.integers(0, settings.interval_ms, hosts)
    return Plan(jobs, cards, afflictions, [int(each) for each in offsets], late)


def _kinds(settings: FleetSettings, rng: np.random.Generator) -> list[Fault]:
    """Return the faults that fit: half of a small fleet stays healthy."""
    if not settings.fault_share:
        return []
    room = settings.gpus // 2
    wanted = list(dict.fromkeys(settings.faults))
    if len(wanted) <= room:
        return wanted
    chosen = rng.choice(len(wanted), size=room, replace=False)
    return [wanted[index] for index in sorted(chosen)]


def _jobs(gpus: int, kinds: list[Fault], each: int, rng: np.random.Generator) -> Iterator[Job]:
    small = [
        size_of for kind in kinds if kind in JOB_FAULTS for size_of in _chunks(kind, each, rng)
    ]
    healthy = gpus - sum(size for _, size in small)
    begin = 0
    while healthy - begin >= HOST_CARDS:
        hosts = min(int(rng.choice(HEALTHY_HOSTS)), (healthy - begin) // HOST_CARDS)
        model = MODELS[int(rng.choice(len(MODELS), p=MODEL_SHARES))]
        cards = range(begin, begin + hosts * HOST_CARDS)
        yield _job(cards, model, None, rng)
        begin = cards.stop
    if healthy > begin:
        yield _job(range(begin, healthy), H200, None, rng)
    begin = healthy
    for kind, size in small:
        yield _job(range(begin, begin + size), H200, kind, rng)
        begin += size


def _chunks(kind: Fault, total: int, rng: np.random.Generator) -> Iterator[tuple[Fault, int]]:
    while total:
        size = min(total, int(rng.choice(SMALL_JOBS)))
        yield kind, size
        total -= size


def _job(cards: range, model: Model, fault: Fault | None, rng: np.random.Generator) -> Job:
    trains = fault is not None or rng.random() < TRAINING_SHARE
    unused = fault is Fault.IDLE and rng.random() < 0.5
    kind = TRAINING[int(rng.integers(len(TRAINING)))] if trains else SERVING
    return Job(
        name="" if unused else f"{kind}-{cards.start:05d}",
        namespace="" if unused else NAMESPACES[int(rng.integers(len(NAMESPACES)))],
        cards=cards,
        model=model,
        phase="idle" if unused else "train_steady" if trains else "serving",
        memory_share=float(rng.uniform(0.35, 0.9)),
        trace_offset=int(rng.integers(1_000_000)),
        fault=fault,
    )


def _cards(number: int, job: Job, rng: np.random.Generator) -> Iterator[Card]:
    first_host = job.cards.start // HOST_CARDS
    for position in job.cards:
        host, index = divmod(position, HOST_CARDS)
        drawn = UUID(bytes=rng.bytes(16), version=4)
        yield Card(
            gpu_id=f"GPU-{drawn}",
            host=host,
            index=index,
            model=job.model,
            namespace=job.namespace,
            pod=f"{job.name}-{host - first_host}" if job.name else "",
            job=number,
        )


def _job_afflictions(
    jobs: list[Job], settings: FleetSettings, rng: np.random.Generator
) -> Iterator[Affliction]:
    for job in jobs:
        if job.fault is None:
            continue
        begin, end = (0, settings.ticks) if not job.name else _span(settings.ticks, rng)
        detail = _job_detail(job.fault, rng)
        for card in job.cards:
            yield Affliction(card=card, fault=job.fault, begin=begin, end=end, detail=detail)


def _job_detail(fault: Fault, rng: np.random.Generator) -> dict[str, Any]:
    drawn = rng.random()
    if fault is Fault.POWER_CAPPED:
        return {"phase": "matmul_bf16" if drawn < 0.7 else "oscillating"}
    if fault is Fault.LAUNCH_BOUND:
        return {"util_gain": 1.0 if drawn < 0.5 else 2.5}
    if fault is Fault.PCIE_BOUND:
        # Copies alone run no kernels at all, short kernels between them look like launches.
        return {"util_gain": (0.0, 1.0, 2.5)[int(3 * drawn)]}
    return {}


def _span(ticks: int, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a span with a healthy time before it, and sometimes after it."""
    begin = min(max(1, int(ticks * rng.uniform(0.15, 0.35))), ticks - 1)
    length = max(1, int(ticks * rng.uniform(0.4, 0.6)))
    return begin, min(begin + length, ticks)


def _spread_faults(
    kinds: list[Fault],
    each: int,
    whole: int,
    late: int | None,
    settings: FleetSettings,
    rng: np.random.Generator,
) -> Iterator[Affliction]:
    """Spread the faults of single cards over the hosts of healthy jobs."""
    hosts = [host for host in map(int, rng.permutation(whole)) if host != late]
    # A card without a first sample is not missing, so the fault does not begin at the first tick.
    left_out = {Fault.MISSING} if settings.ticks == 1 else set()
    single = [kind for kind in kinds if kind not in {*JOB_FAULTS, *left_out}]
    wanted = [kind for kind in single for _ in range(each)]
    if wanted.count(Fault.MISSING) > HOST_CARDS and len(hosts) > 4:
        begin, end = _span(settings.ticks, rng)
        out = hosts.pop()
        for index in range(HOST_CARDS):
            wanted.remove(Fault.MISSING)
            card = out * HOST_CARDS + index
            yield Affliction(
                card=card, fault=Fault.MISSING, begin=begin, end=end, detail={"cause": "host"}
            )
    places = _places(hosts, settings.gpus, rng)
    for fault, card in zip(wanted, places, strict=False):
        begin, end = _span(settings.ticks, rng)
        if fault is Fault.MISSING and rng.random() < 0.5:
            end = settings.ticks
        yield Affliction(
            card=card, fault=fault, begin=begin, end=end, detail=_card_detail(fault, rng)
        )


def _places(hosts: list[int], gpus: int, rng: np.random.Generator) -> Iterator[int]:
    """Return cards, one from each host in turn, since small fleets have few hosts."""
    if not hosts:
        yield from range(gpus // 2)
        return
    order = {host: rng.permutation(HOST_CARDS) for host in hosts}
    for turn in range(HOST_CARDS // 2):
        for host in hosts:
            yield host * HOST_CARDS + int(order[host][turn])


def _card_detail(fault: Fault, rng: np.random.Generator) -> dict[str, Any]:
    drawn = rng.random(2)
    if fault is Fault.THERMAL_THROTTLED:
        return {"clock_factor": 0.6 + 0.15 * float(drawn[0]), "hardware": bool(drawn[1] < 0.3)}
    if fault is Fault.STRAGGLER:
        return {"factor": 0.6 + 0.12 * float(drawn[0])}
    if fault is Fault.ECC_TREND:
        rate = 360 + 1440 * float(drawn[0])
        return {"per_hour": round(rate), "double_bit": bool(drawn[1] < 0.5)}
    return {}
