"""Applies the dynamic configs of a broker that replace the TLS files of its listeners (KIP-226).

A change is tested on the broker that it is for, before it is committed: unusable files are refused
with the reason. Once it is committed, the listener gets the files in the same way as files that
changed on the disk: by a new context that was tested (`server/tls/tls_context.py`). Setting a
location again reloads its file.

Certificates that a config holds inline are written to files in the data folder, since OpenSSL reads
certificates and keys from files only. They are not secret, but only the broker's user can read the
files. The configs override the settings until they are deleted.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from barnabas.logs import get
from barnabas.metadata import listener_tls
from barnabas.metadata.image import BROKER
from barnabas.metadata.listener_tls import PEM, TlsConfigs, configs_of, in_lines
from barnabas.metadata.metadata_records import ConfigChanged, MetadataRecord
from barnabas.model.errors import ApiError, ErrorCode
from barnabas.model.security_settings import TlsFiles
from barnabas.server.tls.tls_context import TlsContexts, TlsFilesError, check_all

FOLDER = "certificates"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
FILE_BYTES_MAX = 1 << 20
"""Larger files are not read: they are not certificates, and the event loop would wait."""

log = get("barnabas.server")


class ListenerConfigs:
    """The TLS of one broker's listeners, including the files from dynamic configs."""

    def __init__(
        self, node_id: int, data: Path, committed: Callable[[], Mapping[str, str]]
    ) -> None:
        self._resource = (BROKER, str(node_id))
        self._folder = data / FOLDER
        self._committed = committed
        self._contexts: dict[str, TlsContexts] = {}
        self._settings: dict[str, TlsFiles] = {}
        """The files in the settings, by the listener's name in lower case."""
        self._without_tls: set[str] = set()

    def add(self, listener: str, contexts: TlsContexts | None) -> None:
        """Add a listener; it has no contexts if it has no TLS."""
        if contexts is None:
            self._without_tls.add(listener.lower())
        else:
            self._contexts[listener.lower()] = contexts
            self._settings[listener.lower()] = contexts.files

    def check(self, configs: Mapping[str, str], changed: Sequence[str]) -> None:
        """Test what the configs of this broker would be; raise `ApiError` for unusable files."""
        for listener in sorted(listener_tls.listeners_of(changed)):
            try:
                self._check(listener, configs_of(listener, configs))
            except TlsFilesError as error:
                problem = f"listener {listener}: {error}; nothing was changed"
                raise ApiError(ErrorCode.INVALID_REQUEST, problem) from error

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Apply committed configs; None says that all of them may be different."""
        if changes is None:
            self._apply(set(self._contexts), only_new=True)
            return
        for change in changes:
            if isinstance(change, ConfigChanged) and (change.kind, change.name) == self._resource:
                self._apply(listener_tls.listeners_of(change.changes), only_new=False)

    def _check(self, listener: str, wanted: TlsConfigs) -> None:
        if listener not in self._settings:
            known = ", ".join(sorted(self._settings)) or "none"
            problem = "it has no TLS" if listener in self._without_tls else "there is none"
            raise TlsFilesError(f"{problem}; the listeners with TLS are: {known}")
        if wanted.types - {PEM}:
            others = ", ".join(sorted(wanted.types - {PEM}))
            raise TlsFilesError(f"stores of type {others} cannot be read; use PEM files")
        if wanted.keystore is not None and wanted.chain is not None:
            raise TlsFilesError(
                f"{listener_tls.KEYSTORE} and {listener_tls.CHAIN} exclude each other; delete one"
            )
        if wanted.truststore is not None and wanted.authorities is not None:
            raise TlsFilesError(
                f"{listener_tls.TRUSTSTORE} and {listener_tls.AUTHORITIES} exclude each other; "
                "delete one"
            )
        for path in (wanted.keystore, wanted.truststore):
            if path is not None:
                _check_file(path)
        files = self._files(listener, wanted, ".checked")
        try:
            check_all(files)
        finally:
            for kind in ("certificate", "authorities"):
                self._path(listener, kind, ".checked").unlink(missing_ok=True)

    def _apply(self, listeners: set[str], *, only_new: bool) -> None:
        configs = self._committed()
        for listener in sorted(listeners & self._contexts.keys()):
            wanted, contexts = configs_of(listener, configs), self._contexts[listener]
            try:
                files = self._files(listener, wanted, "")
            except TlsFilesError as error:
                event = "kept the old certificate: the dynamic configs cannot be used"
                log.error(event, files_of=contexts.files.label, problem=str(error))  # noqa: TRY400
                continue
            if files != contexts.files or not only_new:
                contexts.use(files)

    def _files(self, listener: str, wanted: TlsConfigs, suffix: str) -> TlsFiles:
        """Return the files of a listener; write those whose content is in the configs."""
        files = self._settings[listener]
        if wanted.keystore is not None:
            files = replace(files, certificate=wanted.keystore, key=wanted.keystore)
        if wanted.chain is not None:
            path = self._write(listener, "certificate", suffix, wanted.chain)
            files = replace(files, certificate=path)
        if wanted.truststore is not None:
            files = replace(files, authorities=wanted.truststore)
        if wanted.authorities is not None:
            path = self._write(listener, "authorities", suffix, wanted.authorities)
            files = replace(files, authorities=path)
        return files

    def _path(self, listener: str, kind: str, suffix: str) -> Path:
        return self._folder / f"{listener}.{kind}.pem{suffix}"

    def _write(self, listener: str, kind: str, suffix: str, content: str) -> str:
        path = self._path(listener, kind, suffix)
        text = in_lines(content).encode("ascii", "replace")
        try:
            self._folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(os.open(f"{path}.new", flags, FILE_MODE), "wb") as file:
                file.write(text)
            Path(f"{path}.new").replace(path)
        except OSError as error:
            raise TlsFilesError(f"{path} cannot be written: {error.strerror or error}") from error
        return str(path)


def _check_file(path: str) -> None:
    """Refuse anything but a small regular file before it is opened: a pipe would never end."""
    if not Path(path).is_absolute():
        raise TlsFilesError(f"{path} is relative; write the whole path of a file on the broker")
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        problem = (isinstance(error, OSError) and error.strerror) or str(error)
        raise TlsFilesError(f"{path} cannot be read: {problem}") from error
    if not stat.S_ISREG(found.st_mode):
        raise TlsFilesError(f"{path} is not a file")
    if found.st_size > FILE_BYTES_MAX:
        raise TlsFilesError(f"{path} has {found.st_size} bytes; a PEM file is smaller")
