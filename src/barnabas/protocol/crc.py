"""Loads the CRC-32C function from the extension module of the package `crc32c`.

Importing the package itself looks up its version, which imports sixty modules of the standard
library and costs 5 MB of memory and a tenth of a broker's start.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import cast

from barnabas.model.ports import Buffer


def _load() -> Callable[[Buffer], int]:
    package = find_spec("crc32c")
    folders = None if package is None else package.submodule_search_locations
    spec = None if folders is None else PathFinder.find_spec("_crc32c", folders)
    if spec is None or spec.loader is None:
        from crc32c import crc32c as usual  # noqa: PLC0415 - if the layout of the package changes

        return usual
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[Buffer], int]", module.crc32c)


crc32c = _load()
