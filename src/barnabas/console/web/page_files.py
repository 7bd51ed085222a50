"""Serves the built page: files with hashed names for ever, the page itself with an ETag.

Every path that is no file answers the page, so that each URL can be reloaded and shared. A file is
sent compressed where the build left it compressed beside it (`name.js.br`, `name.js.gz`).
"""

import hashlib
import mimetypes
import re
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parents[1] / "static"
PAGE = "index.html"
BASE_ELEMENT = b'<base href="/">'
HASHED = re.compile(r"assets/.+[-.][A-Za-z0-9_-]{8,}\.\w+")
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
ENCODINGS = {"br": ".br", "gzip": ".gz"}
NOT_BUILT = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>Barnabas</title>"
    b"<p>The page of the console is not built; run <code>make web</code>. "
    b"Its API is below <code>api/</code>."
)
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".html": "text/html",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, in the encodings that it was built in."""

    media_type: str
    cache_control: str
    etag: str
    contents: dict[str, bytes]
    """The bytes by encoding; `identity` is always there."""


class PageFiles:
    """All files of the page, read once."""

    def __init__(self, base_path: str, folder: Path = FOLDER) -> None:
        self._files = _read_files(folder, base_path)
        if PAGE not in self._files:
            self._files[PAGE] = _page_file(PAGE, {"identity": NOT_BUILT})

    def answer(self, request: Request, path: str) -> Response:
        """Return the file at a path, or the page."""
        file = self._files.get(path.lstrip("/"))
        if file is None and path.startswith("/assets/"):
            return Response(
                "There is no such file\n", HTTPStatus.NOT_FOUND, media_type="text/plain"
            )
        file = file or self._files[PAGE]
        headers = {
            "ETag": file.etag,
            "Cache-Control": file.cache_control,
            "Vary": "Accept-Encoding",
        }
        known = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
        if file.etag in known:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        encoding = _best_encoding(request.headers.get("accept-encoding", ""), file)
        if encoding != "identity":
            headers["Content-Encoding"] = encoding
        return Response(file.contents[encoding], headers=headers, media_type=file.media_type)


def _read_files(folder: Path, base_path: str) -> dict[str, PageFile]:
    found: dict[str, PageFile] = {}
    compressed = tuple(ENCODINGS.values())
    for place in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if not place.is_file() or place.name.endswith(compressed):
            continue
        name = place.relative_to(folder).as_posix()
        contents = {"identity": place.read_bytes()}
        if name == PAGE:
            base = f'<base href="{base_path}/">'.encode()
            contents["identity"] = contents["identity"].replace(BASE_ELEMENT, base)
        else:
            for encoding, suffix in ENCODINGS.items():
                packed = place.with_name(place.name + suffix)
                if packed.is_file():
                    contents[encoding] = packed.read_bytes()
        found[name] = _page_file(name, contents)
    return found


def _page_file(name: str, contents: dict[str, bytes]) -> PageFile:
    suffix = Path(name).suffix
    kind = TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    digest = hashlib.sha256(contents["identity"]).hexdigest()[:32]
    return PageFile(
        media_type=kind,
        cache_control=FOR_EVER if HASHED.fullmatch(name) else ASK_AGAIN,
        etag=f'"{digest}"',
        contents=contents,
    )


def _best_encoding(accepted: str, file: PageFile) -> str:
    """Return the first of our encodings that a browser takes; `q=0` means that it does not."""
    wanted = set()
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            wanted.add(name.strip())
    return next(
        (name for name in ENCODINGS if name in wanted and name in file.contents), "identity"
    )
