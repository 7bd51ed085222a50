"""CRC-32C, from the extension module alone.

The package `crc32c` looks up its own version when it is imported, which brings in sixty modules of
the standard library, 5 MB of memory and a tenth of a broker's start; all we need is one function.
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
        from crc32c import crc32c as usual  # noqa: PLC0415 - the way for a package laid out anew

        return usual
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[Buffer], int]", module.crc32c)


crc32c = _load()
