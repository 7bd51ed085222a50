"""Tests the random input of `make fuzz-login`, and how sslyze's findings are read."""

from collections import Counter

import pytest

from tools.check_tls import mozilla_reasons, wrong_versions
from tools.login_garbage import Garbage, Input, client_hellos


def made(seed: int, count: int = 400, **shares: float) -> list[Input]:
    chosen = {"tls_share": 0.0, "handshake_share": 0.0} | shares
    garbage = Garbage(
        seed, tls_share=chosen["tls_share"], handshake_share=chosen["handshake_share"]
    )
    return list(garbage.inputs(count))


def test_a_seed_makes_the_same_inputs_without_tls() -> None:
    assert made(1) == made(1)
    assert made(1) != made(2)


def test_the_shares_say_where_inputs_go() -> None:
    where = Counter(
        (one.is_plain, one.handshakes) for one in made(3, tls_share=0.3, handshake_share=0.2)
    )
    assert set(where) == {(True, False), (False, False), (False, True)}
    assert where[True, False] > where[False, False] > where[False, True]


def test_every_input_has_bytes_and_some_arrive_in_parts() -> None:
    inputs = made(4, tls_share=0.3, handshake_share=0.2)
    assert all(one.parts and all(one.parts) for one in inputs)
    assert {len(one.parts) for one in inputs} == {1, 2}


def test_frames_of_a_login_come_whole_and_cut_and_some_are_too_large() -> None:
    whole = Counter[bool]()
    large = 0
    for one in made(5, 2000):
        content = b"".join(one.parts)
        size = int.from_bytes(content[:4], "big", signed=True)
        large += size > 512 * 1024
        whole[size + 4 <= len(content)] += 1
    assert min(whole[True], whole[False], large) > 100


def test_client_hellos_are_tls_records_of_two_versions() -> None:
    found = list(client_hellos())
    assert all(hello[:2] == b"\x16\x03" for hello in found)
    assert len({len(hello) for hello in found}) > 1


# --- sslyze's verdict ----------------------------------------------------------------------------


def result(**suites: list[str]) -> dict[str, object]:
    versions = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3")
    return {
        f"{version}_cipher_suites": {
            "result": {
                "accepted_cipher_suites": [
                    {"cipher_suite": {"name": name}} for name in suites.get(version, [])
                ]
            }
        }
        for version in versions
    }


GOOD = {
    "tls_1_2": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
    "tls_1_3": ["TLS_CHACHA20_POLY1305_SHA256"],
}


@pytest.mark.parametrize(
    ("suites", "wrong"),
    [
        (GOOD, []),
        (GOOD | {"tls_1_1": ["TLS_RSA_WITH_RC4_128_SHA"]}, ["tls_1_1 is accepted"]),
        (
            GOOD | {"tls_1_2": ["TLS_RSA_WITH_AES_128_GCM_SHA256"]},
            ["TLS_RSA_WITH_AES_128_GCM_SHA256 is accepted"],
        ),
        (
            GOOD | {"tls_1_2": ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"]},
            ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA is accepted"],
        ),
        ({"tls_1_2": GOOD["tls_1_2"]}, ["TLS 1.2 or 1.3 is not accepted"]),
    ],
)
def test_old_versions_and_weak_suites_are_found(
    suites: dict[str, list[str]], wrong: list[str]
) -> None:
    assert list(wrong_versions(result(**suites))) == wrong


def test_reasons_are_read_from_what_sslyze_prints() -> None:
    printed = (
        "x\n COMPLIANCE AGAINST TLS CONFIGURATION\n\n  1.2.3.4:1: FAILED\n   * tls_curves: X\n"
    )
    assert list(mozilla_reasons(printed)) == [("tls_curves", "X")]
    assert list(mozilla_reasons("nothing")) == [("verdict", "sslyze printed none")]
