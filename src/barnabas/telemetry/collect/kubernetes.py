"""Discovers dcgm-exporter pods as scrape targets by listing them at the Kubernetes API server.

Inside a cluster the address of the API server comes from the environment; token and certificate are
those of the pod's service account, which needs `list` on `pods` in the namespace. A pod is a
target while it runs and has an address. The node's name is the hostname of its samples, unless the
page has one.

Listing runs on a thread of its own. If it fails, the targets stay as they were.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote, urlencode

from barnabas.telemetry.collect.fetching import FetchError, StatusError, get
from barnabas.telemetry.collect.file_targets import Found, TargetsError
from barnabas.telemetry.collect.pacing import NAP_S
from barnabas.telemetry.collect.targets import DEFAULT_PORT, Access

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ALL_NAMESPACES = "*"
PORT_NAME = "metrics"
REFRESH_S = 30.0
TIMEOUT_S = 10.0
LIST_BYTES_MAX = 64 << 20
PODS_A_PAGE = 500
PAGES_MAX = 1_000
GONE = 410
"""The list changed too much while its pages were read, and must be listed again."""


@dataclass(frozen=True, kw_only=True)
class PodSettings:
    """The pods to find, and the API server."""

    selector: str
    """Labels of the pods, in the form of kubectl's --selector."""
    namespace: str = ""
    """The namespace; `*` for all. The default is that of the service account."""
    port: int = 0
    """The port to scrape. The default is the one named `metrics`, or else 9400."""
    scheme: str = ""
    path: str = ""
    api: str = ""
    """The API server. The default is that of the cluster."""
    token_file: str = str(ACCOUNT / "token")
    ca_file: str = str(ACCOUNT / "ca.crt")
    refresh_s: float = REFRESH_S

    def access(self) -> Access:
        """Return the credentials; outside of a cluster there may be none."""
        token_file = self.token_file if Path(self.token_file).exists() else ""
        ca_file = self.ca_file if Path(self.ca_file).exists() else ""
        return Access(token_file=token_file, ca_file=ca_file)


def api_address(environment: Mapping[str, str]) -> str:
    """Return the API server of the cluster that this process runs in."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise TargetsError(
            "this process does not run in a Kubernetes pod (KUBERNETES_SERVICE_HOST is not set); "
            "name the API server as `api` under `kubernetes` in the file of --settings"
        )
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def own_namespace(account: Path = ACCOUNT) -> str:
    """Return the namespace of the service account."""
    try:
        return (account / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return "default"


def list_url(api: str, namespace: str, selector: str, after: str = "") -> str:
    """Return the request for one page of the list."""
    where = "" if namespace == ALL_NAMESPACES else f"/namespaces/{quote(namespace, safe='')}"
    query = {"labelSelector": selector, "limit": str(PODS_A_PAGE)}
    if after:
        query["continue"] = after
    return f"{api.rstrip('/')}/api/v1{where}/pods?{urlencode(query)}"


def pod_targets(document: Mapping[str, Any], settings: PodSettings) -> list[Found]:
    """Return the targets in one page of the list; raise if it is not a list of pods."""
    found = []
    for pod in document["items"]:
        status, spec = pod.get("status") or {}, pod.get("spec") or {}
        address = status.get("podIP", "")
        is_ending = "deletionTimestamp" in (pod.get("metadata") or {})
        if status.get("phase") != "Running" or not address or is_ending:
            continue
        port = settings.port or _port(spec)
        host = f"[{address}]" if ":" in address else address
        node = spec.get("nodeName", "")
        found.append(
            Found(
                address=f"{host}:{port}",
                labels={"hostname": node} if node else {},
                scheme=settings.scheme,
                path=settings.path,
            )
        )
    return found


def list_pods(settings: PodSettings, fetch: Callable[[str], bytes]) -> list[Found]:
    """Request the whole list, page by page."""
    found: list[Found] = []
    after = ""
    for _ in range(PAGES_MAX):
        url = list_url(settings.api, settings.namespace, settings.selector, after)
        try:
            document = json.loads(fetch(url))
            found += pod_targets(document, settings)
            after = (document.get("metadata") or {}).get("continue") or ""
        except StatusError as error:
            if error.status != GONE or not after:
                raise
            found, after = [], ""
            continue
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FetchError(f"the response is not a list of pods ({error!r:.80})") from error
        if not after:
            return found
    raise FetchError(f"the list has no end after {PAGES_MAX:,} pages")


class PodTargets:
    """The present pods."""

    def __init__(
        self,
        settings: PodSettings,
        tell: Callable[[str], None],
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start to list pods, on a thread that ends with the process."""
        self._settings = settings
        self._tell = tell
        self._is_stopping = is_stopping
        self._found: list[Found] = []
        self._was_asked = Event()
        self._closed = Event()
        self._trouble = ""
        Thread(target=self._work, name="pods", daemon=True).start()

    def found(self) -> list[Found]:
        """Return the targets; the first call waits for the first answer."""
        while not self._was_asked.wait(NAP_S) and not self._is_stopping():
            pass
        return self._found

    def close(self) -> None:
        """Stop the thread that lists pods."""
        self._closed.set()

    def refresh(self) -> None:
        """List the pods once; a failure does not change the targets."""
        try:
            found = list_pods(self._settings, self._fetch)
        except FetchError as error:
            if not self._trouble:
                self._tell(f"The pods cannot be listed ({error}); the targets stay as they were")
            self._trouble = str(error)
            return
        if self._trouble:
            self._tell("The pods can be listed again")
        self._trouble = ""
        if found != self._found:
            self._tell(f"{len(found):,} pods match {self._settings.selector} now")
            self._found = found

    def _work(self) -> None:
        while True:
            self.refresh()
            self._was_asked.set()
            if self._closed.wait(self._settings.refresh_s):
                return

    def _fetch(self, url: str) -> bytes:
        access = self._settings.access()
        return get(url, access, timeout_s=TIMEOUT_S, bytes_max=LIST_BYTES_MAX)


def _port(spec: Mapping[str, Any]) -> int:
    for container in spec.get("containers") or []:
        for port in container.get("ports") or []:
            if port.get("name") == PORT_NAME:
                return int(port["containerPort"])
    return DEFAULT_PORT
