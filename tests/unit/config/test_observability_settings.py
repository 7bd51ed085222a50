"""Tests the section `observability`: from files, variables and flags, and what is refused."""

from pathlib import Path

import pytest

from barnabas import config
from barnabas.config.listener_settings import warnings
from barnabas.model.errors import ConfigError
from barnabas.model.settings import ObservabilitySettings


def loaded(**values: object) -> ObservabilitySettings:
    flags = {f"observability.{name}": value for name, value in values.items()}
    return config.load(None, {}, flags).observability


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "barnabas.yaml"
    file.write_text(
        "observability:\n  http_listen: 0.0.0.0:9644\n  slow_request_time: 2s\n"
        "  slow_request_times: [Fetch:1s, CreateTopics:30s]\n"
    )
    found = config.load(file, {}, {}).observability
    assert found.http_listen == "0.0.0.0:9644"
    assert found.slow_request_ms == 2_000
    assert found.slow_request_times == ("Fetch:1s", "CreateTopics:30s")


def test_variables() -> None:
    environment = {
        "BARNABAS_OBSERVABILITY_HTTP_LISTEN": "[::1]:0",
        "BARNABAS_OBSERVABILITY_SLOW_REQUEST_TIMES": "Fetch:1500",
    }
    found = config.load(None, environment, {}).observability
    assert (found.http_listen, found.slow_request_times) == ("[::1]:0", ("Fetch:1500",))


def test_off_by_default() -> None:
    assert loaded() == ObservabilitySettings()
    assert loaded().http_listen is None


@pytest.mark.parametrize("address", ["9644", "host:", "host:x", "::1:9644", "host:65536", ":9644"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="write an address such as"):
        loaded(http_listen=address)


@pytest.mark.parametrize("times", ["Fetch", "Fetch:soon", "Nonsense:1s", "fetch:1s", "Fetch:-1"])
def test_what_is_no_limit_of_an_api_is_refused(times: str) -> None:
    with pytest.raises(ConfigError, match="write a list of API:time"):
        loaded(slow_request_times=times)


def test_a_public_listener_beside_a_guarded_cluster_is_a_warning() -> None:
    guarded = {"security.authorizer": "acl"}

    def warned(address: str, flags: dict[str, str]) -> bool:
        settings = config.load(None, {}, {"observability.http_listen": address, **flags})
        return any("observability.http_listen" in each for each in warnings(settings))

    assert warned("0.0.0.0:9644", guarded)
    assert not warned("127.0.0.1:9644", guarded)
    assert not warned("0.0.0.0:9644", {})
