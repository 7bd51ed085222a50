"""Has sslyze scan the TLS listeners of a running broker, and checks its verdict.

    make sslyze

The broker has a listener for each kind of certificate (ECDSA, RSA), one with SASL, and one that
requires a certificate of the client. What is expected stands in `EXPECTED`. Beyond that, the
listeners must fit Mozilla's "intermediate" configuration, apart from what `EXPLAINED` says.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trustme

from barnabas.testing.process import BrokerSubprocess

TIMEOUT_S = 300
LISTENERS = {
    "ECDSA": ("SSL", "ecdsa", ""),
    "RSA": ("SSL", "rsa", ""),
    "LOGIN": ("SASL_SSL", "ecdsa", "mechanisms: [SCRAM-SHA-512]"),
    "MUTUAL": ("SSL", "ecdsa", "client_authentication: required"),
}
"""The protocol, certificate and further settings of each."""
SCANS = (
    *("sslv2", "sslv3", "tlsv1", "tlsv1_1", "tlsv1_2", "tlsv1_3", "reneg", "heartbleed", "robot"),
    *("compression", "openssl_ccs", "early_data", "resum", "ems", "fallback", "elliptic_curves"),
)
OLD_VERSIONS = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1")
FORWARD_SECRET = ("TLS_ECDHE_ECDSA_WITH_", "TLS_ECDHE_RSA_WITH_")
AUTHENTICATED = ("_GCM_SHA256", "_GCM_SHA384", "_CHACHA20_POLY1305_SHA256")
EXPECTED: tuple[tuple[str, str, Any], ...] = (
    ("session_renegotiation", "is_vulnerable_to_client_renegotiation_dos", False),
    ("session_renegotiation", "client_renegotiations_success_count", 0),
    ("tls_compression", "supports_compression", False),
    ("heartbleed", "is_vulnerable_to_heartbleed", False),
    ("openssl_ccs_injection", "is_vulnerable_to_ccs_injection", False),
    ("robot", "robot_result", "NOT_VULNERABLE_RSA_NOT_SUPPORTED"),
    ("tls_1_3_early_data", "supports_early_data", False),
    ("tls_fallback_scsv", "supports_fallback_scsv", True),
    ("tls_extended_master_secret", "supports_ems_extension", True),
    ("session_resumption", "session_id_resumption_result", "NOT_SUPPORTED"),
    ("session_resumption", "tls_ticket_resumption_result", "NOT_SUPPORTED"),
)
"""The scan, the attribute of its result, and the value."""
CURVES = {"X25519", "secp256r1", "secp384r1", "X448", "secp521r1"}
EXPLAINED = {
    "certificate_path_validation": "the authority is made for the test",
    "tls_curves": "two more curves than Mozilla's: Python can restrict them to one curve only",
}
"""Where a listener does not fit Mozilla's configuration, and why."""


def prepare(folder: Path) -> Path:
    """Write certificates and settings; return the settings file."""
    since = datetime.now(UTC) - timedelta(hours=1)
    until = since + timedelta(days=90)
    for kind, key_type in (("ecdsa", trustme.KeyType.ECDSA), ("rsa", trustme.KeyType.RSA)):
        authority = trustme.CA(key_type=key_type)
        made = authority.issue_cert(
            "localhost", "127.0.0.1", key_type=key_type, not_before=since, not_after=until
        )
        authority.cert_pem.write_to_path(folder / f"{kind}-ca.pem")
        made.private_key_pem.write_to_path(folder / f"{kind}.key")
        (folder / f"{kind}.pem").write_bytes(b"".join(c.bytes() for c in made.cert_chain_pems))
    lines = ["listeners:", '  PLAIN: {listen: "127.0.0.1:0"}']
    for name, (protocol, kind, more) in LISTENERS.items():
        lines += [f"  {name}:", "    listen: 127.0.0.1:0", f"    protocol: {protocol}"]
        lines += [f"    certificate: {folder}/{kind}.pem", f"    key: {folder}/{kind}.key"]
        lines += [f"    {more}"] if more else []
        if name == "MUTUAL":
            lines.append(f"    authorities: {folder}/{kind}-ca.pem")
    settings = folder / "settings.yaml"
    settings.write_text("\n".join(lines) + "\n")
    return settings


def scan(sslyze: Path, address: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Return the results of one listener, and what sslyze printed.

    sslyze has a certificate, which only one of the listeners asks for.
    """
    written = folder / "sslyze.json"
    words = [str(sslyze), f"--json_out={written}", "--mozilla_config=intermediate"]
    words += [f"--cert={folder}/ecdsa.pem", f"--key={folder}/ecdsa.key"]
    words += [f"--{name}" for name in SCANS] + [address]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if not written.exists():
        sys.exit(f"sslyze failed: {done.stderr.strip() or done.stdout.strip()}")
    found = json.loads(written.read_text())
    written.unlink()
    (result,) = found["server_scan_results"]
    if result["scan_status"] != "COMPLETED":
        sys.exit(f"sslyze could not scan {address}: {result['connectivity_error_trace']}")
    return result["scan_result"], done.stdout


def problems(result: dict[str, Any], printed: str) -> Iterator[str]:
    """Return what is not as it should be."""
    yield from wrong_versions(result)
    for name, attribute, wanted in EXPECTED:
        outcome = result[name]["result"]
        if outcome is None:
            yield f"{name} was not scanned: {result[name]['status']}"
        elif outcome[attribute] != wanted:
            yield f"{name}: {attribute} is {outcome[attribute]}, not {wanted}"
    curves = {curve["name"] for curve in result["elliptic_curves"]["result"]["supported_curves"]}
    if not curves <= CURVES:
        yield f"curves: {curves - CURVES}"
    for reason, text in mozilla_reasons(printed):
        if reason not in EXPLAINED:
            yield f"Mozilla's configuration: {reason}: {text}"


def wrong_versions(result: dict[str, Any]) -> Iterator[str]:
    """Return versions and cipher suites that should not be accepted, or that should be."""
    for version in OLD_VERSIONS:
        if accepted(result, version):
            yield f"{version} is accepted"
    new, newest = accepted(result, "tls_1_2"), accepted(result, "tls_1_3")
    if not new or not newest:
        yield "TLS 1.2 or 1.3 is not accepted"
    for name in (*new, *newest):
        is_secret = name in newest or name.startswith(FORWARD_SECRET)
        if not (is_secret and name.endswith(AUTHENTICATED)):
            yield f"{name} is accepted"


def accepted(result: dict[str, Any], version: str) -> list[str]:
    """Return the accepted cipher suites of a version."""
    outcome = result[f"{version}_cipher_suites"]["result"]
    return [each["cipher_suite"]["name"] for each in outcome["accepted_cipher_suites"]]


def mozilla_reasons(printed: str) -> Iterator[tuple[str, str]]:
    """Return why the listener does not fit Mozilla's configuration."""
    _, _, verdict = printed.partition("COMPLIANCE AGAINST TLS CONFIGURATION")
    if not verdict:
        yield "verdict", "sslyze printed none"
    for line in verdict.splitlines():
        if line.strip().startswith("* "):
            reason, _, text = line.strip().removeprefix("* ").partition(": ")
            yield reason, text


def main() -> int:
    """Scan each listener; return 1 if one is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sslyze", type=Path, required=True, help="the program")
    wanted = parser.parse_args()
    is_good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = ["--config", str(prepare(folder))]
        with BrokerSubprocess(folder / "data", arguments=arguments, listener="PLAIN") as broker:
            for listener in LISTENERS:
                result, printed = scan(wanted.sslyze, broker.listeners[listener], folder)
                found = list(problems(result, printed))
                is_good &= not found
                suites = accepted(result, "tls_1_2") + accepted(result, "tls_1_3")
                print(f"{listener}: {'as expected' if not found else 'NOT as expected'}")
                print(f"  accepted: {', '.join(suites)}")
                for reason, text in mozilla_reasons(printed):
                    why = f" ({EXPLAINED[reason]})" if reason in EXPLAINED else ""
                    print(f"  Mozilla intermediate, {reason}: {text}{why}")
                for problem in found:
                    print(f"  PROBLEM: {problem}")
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main())
