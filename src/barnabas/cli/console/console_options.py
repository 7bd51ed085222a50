"""The options of `barnabas console`."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.common.client_config import VARIABLE

DEFAULT_LISTEN = "127.0.0.1:8080"

Listen = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="The address of the page; port 0 is a free one."),
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "--client-config",
        envvar=VARIABLE,
        metavar="FILE",
        help="File of client properties (librdkafka's or Java's names), as for TLS and SASL.",
    ),
]
Name = Annotated[str, typer.Option(help="What the page calls the cluster.")]
Metrics = Annotated[
    str, typer.Option(metavar="[ID=]HOST:PORT,...", help="Where brokers serve /metrics.")
]
Interval = Annotated[str, typer.Option(help="How often the cluster is read.")]
Login = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="none, password (--passwords), broker (users of the brokers, by SASL) or oidc.",
    ),
]
Passwords = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Users, written by `barnabas console password`."),
]
OidcIssuer = Annotated[
    str | None, typer.Option(metavar="URL", help="Where users log in with --login oidc.")
]
OidcClientId = Annotated[
    str | None, typer.Option(metavar="ID", help="The console's id at the issuer.")
]
OidcClientSecretFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Its secret; none for a public client.")
]
OidcClaim = Annotated[
    str, typer.Option(metavar="CLAIM", help="Which claim of the token names the user.")
]
ReadWrite = Annotated[
    bool | None,
    typer.Option(
        "--read-write/--read-only",
        help="Whether users may change the cluster; default: on this computer alone.",
    ),
]
BasePath = Annotated[
    str, typer.Option(metavar="PATH", help="The path of the page behind a proxy: /kafka.")
]
PublicUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="What users type, behind a proxy; with its path."),
]
Lake = Annotated[
    Path | None,
    typer.Option(envvar="BARNABAS_LAKE", metavar="DIR", help="Tables of GPU telemetry."),
]
StreamsTopic = Annotated[
    str | None,
    typer.Option(metavar="TOPIC", help="Progress of Spark's queries; default: __barnabas_streams."),
]
Alertmanager = Annotated[
    str | None, typer.Option(metavar="URL", help="Show the alerts of this Alertmanager too.")
]
Audit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="One line of JSON for each change; default: stderr."),
]
WithParent = Annotated[
    bool, typer.Option("--with-parent", help="Stop when the parent process ends.")
]
