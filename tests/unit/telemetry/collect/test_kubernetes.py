"""Tests pods as targets, from an API server over HTTP and HTTPS."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.telemetry.collect.file_targets import Found, TargetsError
from barnabas.telemetry.collect.kubernetes import (
    PodSettings,
    PodTargets,
    api_address,
    list_url,
    own_namespace,
)
from barnabas.testing.waiting import eventually
from tests.support.pipelines.canned_http import Canned, answer, make_certificate

Serve = Callable[..., Canned]
SETTINGS = PodSettings(selector="app=dcgm", namespace="gpu", refresh_s=600)


def pod(address: str, node: str = "node-1", phase: str = "Running", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "x", **more.get("metadata", {})},
        "spec": {"nodeName": node, "containers": more.get("containers", [{}])},
        "status": {"podIP": address, "phase": phase},
    }


def pods(*items: dict[str, Any], after: str = "") -> bytes:
    document = {"kind": "PodList", "metadata": {"continue": after}, "items": list(items)}
    return answer(json.dumps(document).encode())


def addresses(found: list[Found]) -> list[str]:
    return [each.address for each in found]


def asked(server: Canned, **how: Any) -> PodTargets:
    return PodTargets(replace(SETTINGS, api=server.base, **how), lambda _: None)


def test_running_pods_are_targets(serve: Serve) -> None:
    port = {
        "ports": [{"name": "web", "containerPort": 1}, {"name": "metrics", "containerPort": 99}]
    }
    server = serve(
        pods(
            pod("10.0.0.1"),
            pod("10.0.0.2", phase="Pending"),
            pod(""),
            pod("10.0.0.3", metadata={"deletionTimestamp": "now"}),
            pod("fd00::1", "node-4", containers=[port]),
        )
    )
    found = asked(server).found()
    assert addresses(found) == ["10.0.0.1:9400", "[fd00::1]:99"]
    assert [each.labels for each in found] == [{"hostname": "node-1"}, {"hostname": "node-4"}]
    line = b"GET /api/v1/namespaces/gpu/pods?labelSelector=app%3Ddcgm&limit=500 HTTP/1.1\r\n"
    assert server.requests[0].startswith(line)
    assert addresses(asked(server, port=7).found()) == ["10.0.0.1:7", "[fd00::1]:7"]


def test_a_long_list_comes_in_pages_and_may_have_to_restart(serve: Serve) -> None:
    server = serve(
        pods(pod("10.0.0.1"), after="more"),
        answer(b"", "410 Gone"),
        pods(pod("10.0.0.2"), after="more"),
        pods(pod("10.0.0.3")),
    )
    assert addresses(asked(server).found()) == ["10.0.0.2:9400", "10.0.0.3:9400"]
    assert [b"continue=more" in each for each in server.requests] == [False, True, False, True]


def test_a_failure_keeps_the_targets_and_is_reported_once(serve: Serve) -> None:
    broken = [answer(b"", "403 Forbidden"), answer(b"{}"), answer(b"[]"), answer(b"no json")]
    server = serve(pods(pod("10.0.0.1")), *broken, pods(pod("10.0.0.2")))
    said: list[str] = []
    source = PodTargets(replace(SETTINGS, api=server.base), said.append)
    before = source.found()
    for _ in broken:
        source.refresh()
        assert source.found() is before
    assert [each for each in said if "cannot be listed" in each] == [said[1]]
    assert "403 Forbidden" in said[1]
    source.refresh()
    assert addresses(source.found()) == ["10.0.0.2:9400"]
    assert "can be listed again" in said[2]


def test_the_list_is_asked_for_again_by_itself(serve: Serve) -> None:
    server = serve(pods(pod("10.0.0.1")), pods(pod("10.0.0.2")))
    source = asked(server, refresh_s=0.01)
    eventually(lambda: addresses(source.found()) == ["10.0.0.2:9400"])
    source.close()
    assert len(server.requests) >= 2


def test_token_and_certificate_of_the_service_account_are_used(
    serve: Serve, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    own = make_certificate(tmp_path, "IP:127.0.0.1")
    server = serve(pods(pod("10.0.0.1")), context=own.server())
    said: list[str] = []
    settings = replace(SETTINGS, api=server.base, token_file=str(token))
    assert PodTargets(settings, said.append).found() == []
    assert "not trusted" in said[0]
    trusting = PodTargets(replace(settings, ca_file=str(own.certificate)), said.append)
    assert addresses(trusting.found()) == ["10.0.0.1:9400"]
    assert b"\r\nAuthorization: Bearer t0ken\r\n" in server.requests[0]


def test_the_cluster_is_found_by_its_environment(tmp_path: Path) -> None:
    host = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert api_address(host) == "https://10.0.0.1:6443"
    assert api_address({"KUBERNETES_SERVICE_HOST": "fd00::1"}) == "https://[fd00::1]:443"
    with pytest.raises(TargetsError, match="does not run in a Kubernetes pod"):
        api_address({})
    assert own_namespace(tmp_path) == "default"
    (tmp_path / "namespace").write_text("gpu-operator\n")
    assert own_namespace(tmp_path) == "gpu-operator"
    assert list_url("http://api/", "*", "a=b") == (
        "http://api/api/v1/pods?labelSelector=a%3Db&limit=500"
    )
