"""The one form in which addresses are compared."""

import pytest

from barnabas.security.hosts import folded_host


@pytest.mark.parametrize(
    ("host", "folded"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::FFFF:0a00:0001", "10.0.0.1"),
        ("2001:DB8:0:0::9", "2001:db8::9"),
        ("fe80::1%eth0", "fe80::1"),
        ("a.name", "a.name"),
        ("", ""),
        ("10.0.0.256", "10.0.0.256"),
    ],
)
def test_folded(host: str, folded: str) -> None:
    assert folded_host(host) == folded
