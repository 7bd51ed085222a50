"""`barnabas cert`: make certificates for a test cluster, and show certificates."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.common.options import Json
from barnabas.cli.common.output import print_json, print_table, say

if TYPE_CHECKING:
    from cryptography import x509

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

EXTRA = "cert"
DAY_S = 24 * 3600
NEXT = """
In the settings of broker 1 (--config):

listeners:
  SECURE:
    listen: 0.0.0.0:9093
    protocol: SSL
    certificate: {folder}/broker-1.pem
    key: {folder}/broker-1.key
    authorities: {folder}/ca.pem
    client_authentication: required
cluster:
  tls_certificate: {folder}/broker-1.pem
  tls_key: {folder}/broker-1.key
  tls_authorities: {folder}/ca.pem

Keep {folder}/ca.key away from brokers and clients. These certificates are for tests."""
CLIENT = """
In a client of librdkafka:

security.protocol=SSL
ssl.ca.location={folder}/ca.pem
ssl.certificate.location={folder}/{client}.pem
ssl.key.location={folder}/{client}.key"""


@app.command(
    epilog="Example: barnabas cert create certs --hosts localhost,127.0.0.1 --brokers 3 "
    "--client alice"
)
def create(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the files.")],
    hosts: Annotated[
        str,
        typer.Option(metavar="LIST", help="The names and addresses that clients connect to."),
    ] = "localhost,127.0.0.1",
    brokers: Annotated[int, typer.Option(min=0, help="How many brokers to make files for.")] = 1,
    client: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A client to make files for; may be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="How long the certificates are valid.")] = 365,
    as_json: Json = False,
) -> None:
    """Make an authority, and certificates for brokers and clients that it has signed.

    If DIR has an authority already, it signs further certificates. No file is overwritten.
    """
    with needs_extra(EXTRA):
        from barnabas.cli.cert.authority import Authority
    named = [each.strip() for each in hosts.split(",") if each.strip()]
    wanted = [f"broker-{number}" for number in range(1, brokers + 1)]
    _check(folder, [*wanted, *(client or ())], named)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = Authority(folder, days)
    files = [authority.sign_broker(name, named) for name in wanted]
    files += [authority.sign_client(name) for name in client or ()]
    if as_json:
        print_json(
            {
                "authority": str(folder / "ca.pem"),
                "certificates": {
                    file.stem: {"certificate": str(file), "key": str(file.with_suffix(".key"))}
                    for file in files
                },
            }
        )
        return
    for file in (folder / "ca.pem", *files):
        say(f"wrote {file} and its key")
    if wanted:
        say(NEXT.format(folder=folder))
    for name in client or ():
        say(CLIENT.format(folder=folder, client=name))


@app.command(epilog="Example: barnabas cert show certs/broker-1.pem")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate in PEM.")],
    as_json: Json = False,
) -> None:
    """Show the subject and the issuer of certificates, and how many days they are valid."""
    with needs_extra(EXTRA):
        from cryptography import x509
    try:
        found = x509.load_pem_x509_certificates(file.read_bytes())
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError:
        raise CommandError(f"{file} has no certificate in PEM") from None
    described = [_described(each) for each in found]
    if as_json:
        print_json(described)
        return
    titles = ("name", "hosts", "signed by", "valid until", "days left")
    print_table(
        titles,
        [
            (
                each["name"],
                ", ".join(map(str, each["hosts"])) or None,  # type: ignore[call-overload]
                each["issuer"],
                each["valid_until"],
                each["days_left"],
            )
            for each in described
        ],
    )


def _described(certificate: "x509.Certificate") -> dict[str, object]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    from barnabas.security.certificate_names import read_certificate

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = [str(each.value) for each in names]
    except x509.ExtensionNotFound:
        hosts = []
    until = certificate.not_valid_after_utc
    return {
        "name": read_certificate(certificate.public_bytes(Encoding.DER)).subject,
        "hosts": hosts,
        "issuer": certificate.issuer.rfc4514_string(),
        "valid_until": until.isoformat(),
        "days_left": int((until - datetime.now(UTC)).total_seconds() // DAY_S),
    }


def _check(folder: Path, names: list[str], hosts: list[str]) -> None:
    """Refuse invalid names before the first file is written."""
    if not hosts:
        raise CommandError("--hosts is empty; write the names that clients connect to")
    if len(set(names)) < len(names):
        raise CommandError("two certificates have the same name; give each its own")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) or name == "ca":
            raise CommandError(f"{name!r} cannot be the name of a file; write letters and digits")
        for path in (folder / f"{name}.pem", folder / f"{name}.key"):
            if path.exists():
                raise CommandError(f"{path} exists; remove it, or choose another directory")
