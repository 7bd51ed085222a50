"""Records one NVIDIA card at 10 Hz while it does known work, phase after phase.

    python tools/record_gpu.py tune FOLDER       # the recording for tuning the rules
    python tools/record_gpu.py proof FOLDER      # other work of the same kinds, to prove them

It writes FOLDER/metrics.csv (one row per instant, columns with DCGM's names) and FOLDER/phases.csv
(phase, bottleneck, start, end). It needs PyTorch and a card of the Hopper generation or later,
whose driver counts activity (NVML's GPM), and no other work on the card. The UUID of the card is
masked.
"""

import csv
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch  # type: ignore[import-not-found,unused-ignore]

INTERVAL_S = 0.1
GPM = {
    1: ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.01),
    2: ("DCGM_FI_PROF_SM_ACTIVE", 0.01),
    3: ("DCGM_FI_PROF_SM_OCCUPANCY", 0.01),
    5: ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.01),
    10: ("DCGM_FI_PROF_DRAM_ACTIVE", 0.01),
    20: ("DCGM_FI_PROF_PCIE_TX_BYTES", 1 << 20),
    21: ("DCGM_FI_PROF_PCIE_RX_BYTES", 1 << 20),
}
"""NVML's metric numbers, with DCGM's names and the factor to DCGM's units."""
UUID = "GPU-00000000-0000-4000-8000-0000000000a2"
Work = Callable[[], object]


class Info(ctypes.Structure):
    """NVML's description of a metric."""

    _fields_ = [(name, ctypes.c_char_p) for name in ("short", "long", "unit")]


class Metric(ctypes.Structure):
    """One metric of a query, and its result."""

    _fields_ = [
        ("id", ctypes.c_uint),
        ("result", ctypes.c_int),
        ("value", ctypes.c_double),
        ("info", Info),
    ]


class Question(ctypes.Structure):
    """The query for the time between two samples."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("first", ctypes.c_void_p),
        ("second", ctypes.c_void_p),
        ("metrics", Metric * 512),
    ]


class Pair(ctypes.Structure):
    """Utilisation in per cent."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Memory(ctypes.Structure):
    """Memory in bytes."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Card:
    """The first card, by NVML."""

    def __init__(self) -> None:
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._check("nvmlInit_v2")
        self._handle = ctypes.c_void_p()
        self._check("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self._handle))
        self._samples = [ctypes.c_void_p(), ctypes.c_void_p()]
        for sample in self._samples:
            self._check("nvmlGpmSampleAlloc", ctypes.byref(sample))
        self._check("nvmlGpmSampleGet", self._handle, self._samples[0])

    def read(self) -> dict[str, float]:
        """Return its current metrics."""
        rates, memory = Pair(), Memory()
        self._ask("nvmlDeviceGetUtilizationRates", ctypes.byref(rates))
        self._ask("nvmlDeviceGetMemoryInfo", ctypes.byref(memory))
        found = {
            "DCGM_FI_DEV_GPU_UTIL": float(rates.gpu),
            "DCGM_FI_DEV_MEM_COPY_UTIL": float(rates.memory),
            "DCGM_FI_DEV_FB_TOTAL": memory.total / (1 << 20),
            "DCGM_FI_DEV_FB_USED": memory.used / (1 << 20),
            "DCGM_FI_DEV_FB_FREE": memory.free / (1 << 20),
            "DCGM_FI_DEV_GPU_TEMP": self._number("nvmlDeviceGetTemperature", 0),
            "DCGM_FI_DEV_POWER_USAGE": self._number("nvmlDeviceGetPowerUsage") / 1000,
            "DCGM_FI_DEV_POWER_MGMT_LIMIT": self._number("nvmlDeviceGetEnforcedPowerLimit") / 1000,
            "DCGM_FI_DEV_SM_CLOCK": self._number("nvmlDeviceGetClockInfo", 1),
            "DCGM_FI_DEV_MEM_CLOCK": self._number("nvmlDeviceGetClockInfo", 2),
            "DCGM_FI_DEV_MAX_SM_CLOCK": self._number("nvmlDeviceGetMaxClockInfo", 1),
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": self._long(
                "nvmlDeviceGetCurrentClocksThrottleReasons"
            ),
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": self._long(
                "nvmlDeviceGetTotalEnergyConsumption"
            ),
        }
        return found | self._counted()

    def _counted(self) -> dict[str, float]:
        before, now = self._samples
        self._check("nvmlGpmSampleGet", self._handle, now)
        question = Question(version=1, count=len(GPM), first=before, second=now)
        for place, number in enumerate(GPM):
            question.metrics[place].id = number
        self._check("nvmlGpmMetricsGet", ctypes.byref(question))
        self._samples.reverse()
        return {
            name: question.metrics[place].value * factor
            for place, (name, factor) in enumerate(GPM.values())
            if question.metrics[place].result == 0
        }

    def _number(self, name: str, *arguments: int) -> float:
        value = ctypes.c_uint()
        self._ask(name, *arguments, ctypes.byref(value))
        return float(value.value)

    def _long(self, name: str) -> float:
        value = ctypes.c_ulonglong()
        self._ask(name, ctypes.byref(value))
        return float(value.value)

    def _ask(self, name: str, *arguments: object) -> None:
        self._check(name, self._handle, *arguments)

    def _check(self, name: str, *arguments: object) -> None:
        result = getattr(self._nvml, name)(*arguments)
        if result:
            raise SystemExit(f"{name} failed: {result}")


class Recorder(threading.Thread):
    """Samples the card into a file until it is stopped."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._card = Card()
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sample until stopped."""
        time.sleep(INTERVAL_S)
        model = torch.cuda.get_device_name(0)
        with self._path.open("w", newline="") as file:
            first = self._card.read()
            rows = csv.DictWriter(file, ["timestamp", "uuid", "modelName", *first])
            rows.writeheader()
            due = time.time()
            while not self._stopped.wait(max(0.0, due - time.time())):
                found = {name: f"{value:.12g}" for name, value in self._card.read().items()}
                rows.writerow(
                    {"timestamp": f"{time.time():.3f}", "uuid": UUID, "modelName": model, **found}
                )
                due += INTERVAL_S

    def stop(self) -> None:
        """End it, and wait for the file."""
        self._stopped.set()
        self.join()


def big(gib: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return random numbers that fill so much memory of the card."""
    return torch.randn(int(gib * (1 << 30)) // dtype.itemsize, device="cuda").to(dtype)


def matmul(size: int, dtype: torch.dtype) -> Work:
    """Multiply square matrices."""
    a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in "ab")
    return lambda: a @ b


def triad(gib: float) -> Work:
    """Read two arrays, write a third."""
    a, b, c = big(gib), big(gib), big(gib)
    return lambda: torch.add(b, c, alpha=0.5, out=a)


def copy(gib: float) -> Work:
    """Copy within the memory of the card."""
    a, b = big(gib), big(gib)
    return lambda: a.copy_(b)


def decode(width: int, layers: int, batch: int) -> Work:
    """Run like a language model that writes token by token: all weights are read for few rows."""
    weights = [
        torch.randn(width, width, device="cuda", dtype=torch.bfloat16) for _ in range(layers)
    ]
    state = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        rows = state
        for weight in weights:
            rows = rows @ weight

    return step


def gather(rows: int, width: int) -> Work:
    """Run like an embedding table: read memory lines in random order."""
    table = torch.randn(rows, width, device="cuda")
    places = torch.randint(rows, (4_000_000,), device="cuda")
    return lambda: table.index_select(0, places)


def fft(size: int) -> Work:
    """Transform long signals."""
    signal = torch.randn(64, size, device="cuda", dtype=torch.complex64)
    return lambda: torch.fft.fft(signal)


def upload(mib: int, reverse: bool = False) -> Work:
    """Copy from the host's memory to the card, or back."""
    host = torch.empty(mib << 20, dtype=torch.uint8, pin_memory=True)
    card = torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
    return (lambda: host.copy_(card)) if reverse else (lambda: card.copy_(host))


def fed(mib: int, size: int) -> Work:
    """Run like training whose batches come over PCIe and need little work."""
    move, work = upload(mib), matmul(size, torch.bfloat16)

    def step() -> None:
        move()
        work()

    return step


def offloaded(mib: int, size: int) -> Work:
    """Run like training whose optimizer is in host memory: gradients out, weights in."""
    out, back, work = upload(mib, reverse=True), upload(mib), matmul(size, torch.bfloat16)

    def step() -> None:
        work()
        out()
        back()

    return step


def training(width: int, layers: int, batch: int) -> Work:
    """Train a network of dense layers on rows that stay on the card."""
    parts: list[torch.nn.Module] = []
    for _ in range(layers):
        parts += [torch.nn.Linear(width, width), torch.nn.GELU()]
    model = torch.nn.Sequential(*parts).cuda().bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    rows = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(rows).square().mean().backward()
        optimizer.step()

    return step


def convolution(batch: int, channels: int) -> Work:
    """Convolve images."""
    layer = torch.nn.Conv2d(channels, channels, 3, padding=1).cuda().half()
    layer = layer.to(memory_format=torch.channels_last)
    images = torch.randn(batch, channels, 56, 56, device="cuda", dtype=torch.float16)
    images = images.to(memory_format=torch.channels_last)
    return lambda: layer(images)


def launches(size: int) -> Work:
    """Start kernels with almost no work."""
    small = torch.randn(size, device="cuda")
    return lambda: small.mul_(1.0)


def pause() -> None:
    """Do nothing for a moment."""
    time.sleep(0.1)


def held(gib: float) -> Work:
    """Hold memory, and do nothing with it."""
    kept = torch.empty(int(gib * (1 << 30)), dtype=torch.uint8, device="cuda")

    def step() -> None:
        assert kept.is_cuda
        time.sleep(0.1)

    return step


Phase = tuple[str, str, float, Callable[[], Work]]
BF16, FP32 = torch.bfloat16, torch.float32
PHASES: dict[str, list[Phase]] = {
    "tune": [
        ("idle", "idle", 15, lambda: pause),
        ("matmul_bf16", "compute", 25, lambda: matmul(8192, BF16)),
        ("triad", "memory", 25, lambda: triad(8)),
        ("copy_device", "memory", 20, lambda: copy(16)),
        ("decode", "memory", 25, lambda: decode(8192, 48, 1)),
        ("upload", "pcie", 25, lambda: upload(512)),
        ("download", "pcie", 20, lambda: upload(512, reverse=True)),
        ("fed", "pcie", 25, lambda: fed(256, 4096)),
        ("training", "compute", 25, lambda: training(8192, 8, 16384)),
        ("launches", "launches", 15, lambda: launches(256)),
        ("held", "idle", 15, lambda: held(90)),
        ("idle_end", "idle", 10, lambda: pause),
    ],
    "proof": [
        ("idle", "idle", 15, lambda: pause),
        ("convolution", "compute", 25, lambda: convolution(512, 256)),
        ("gather", "memory", 25, lambda: gather(20_000_000, 256)),
        ("decode_batch", "memory", 25, lambda: decode(12288, 24, 8)),
        ("fft", "memory", 20, lambda: fft(1 << 24)),
        ("matmul_fp32", "compute", 20, lambda: matmul(8192, FP32)),
        ("offloaded", "pcie", 25, lambda: offloaded(512, 8192)),
        ("fed_large", "pcie", 25, lambda: fed(1024, 6144)),
        ("training_wide", "compute", 25, lambda: training(12288, 4, 8192)),
        ("launches_many", "launches", 15, lambda: launches(4096)),
        ("held", "idle", 15, lambda: held(40)),
        ("idle_end", "idle", 10, lambda: pause),
    ],
}


def run(phases: list[Phase]) -> Iterator[tuple[str, str, str, str, int]]:
    """Run each phase for its time; yield its line for the file of phases."""
    for name, bound, seconds, prepare in phases:
        work = prepare()
        work()
        torch.cuda.synchronize()
        begun, steps = time.time(), 0
        while time.time() < begun + seconds:
            work()
            steps += 1
            if steps % (200 if bound == "launches" else 4) == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        yield name, bound, f"{begun:.3f}", f"{time.time():.3f}", steps
        del work
        torch.cuda.empty_cache()


def main() -> None:
    """Record what the command line names."""
    which, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    torch.zeros(1, device="cuda")
    recorder = Recorder(folder / "metrics.csv")
    recorder.start()
    with (folder / "phases.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["phase", "bound", "start_unix", "end_unix", "steps"])
        for row in run(PHASES[which]):
            rows.writerow(row)
            file.flush()
            sys.stderr.write(f"{row}\n")
    recorder.stop()


if __name__ == "__main__":
    main()
