"""Measures the CPU cost of parsing dcgm-exporter's pages, in samples per CPU second.

    python -m bench.exposition

`first` reads each page with an empty cache, as after a start. `again` reads pages of an exporter
that was scraped before, with new values, as in every later round. `line by line` reads the same
pages with the grammar only. It uses CPU time, so that a busy machine affects it little.
"""

import time
from collections.abc import Callable

from barnabas.telemetry.collect.exporter_pages import PageReader
from barnabas.telemetry.collect.exposition import parse_line
from barnabas.telemetry.samples.metrics import BY_NAME
from barnabas.telemetry.samples.readings import Tally

GPUS = 8
PAGES = 50
NAMES = list(BY_NAME)[:25]


def page(number: int) -> str:
    """Return a page of eight cards; the values differ from page to page."""
    lines: list[str] = []
    for rank, name in enumerate(NAMES):
        lines += [f"# HELP {name} A metric of DCGM.", f"# TYPE {name} gauge"]
        for gpu in range(GPUS):
            lines.append(
                f'{name}{{gpu="{gpu}",UUID="GPU-a8affe7e-7930-ae20-3fc6-4b0edf3ebbf{gpu}",'
                f'pci_bus_id="00000000:{gpu:02X}:00.0",device="nvidia{gpu}",'
                'modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",'
                'DCGM_FI_DRIVER_VERSION="580.126.09",container="main",namespace="research",'
                f'pod="train-0"}} {rank + gpu + number / 8}'
            )
    return "\n".join(lines) + "\n"


def rate(read: Callable[[str], object], pages: list[str]) -> float:
    """Return samples per CPU second."""
    began_s = time.process_time()
    for each in pages:
        read(each)
    return len(pages) * len(NAMES) * GPUS / (time.process_time() - began_s)


def reader() -> Callable[[str], object]:
    """Return a reader of one exporter's pages."""
    own = PageReader(where="bench", default_hostname="node-a")
    return lambda text: list(own.read(text, at_ms=0, tally=Tally()))


def read_first(text: str) -> object:
    """Read a page of an exporter that was not scraped before."""
    return reader()(text)


def by_grammar(text: str) -> object:
    """Read a page without a cache."""
    return [parse_line(each) for each in text.split("\n") if each and not each.startswith("#")]


def main() -> None:
    """Print the three figures."""
    pages = [page(number) for number in range(PAGES)]
    warm = reader()
    warm(pages[0])
    print(f"line by line  {rate(by_grammar, pages):>12,.0f} samples per CPU second")
    print(f"first         {rate(read_first, pages):>12,.0f}")
    print(f"again         {rate(warm, pages):>12,.0f}")


if __name__ == "__main__":
    main()
