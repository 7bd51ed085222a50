"""The security of a local cluster: TLS between all, passwords (SCRAM), ACLs, and a first admin.

    DIR/security/ca.pem, ca.key       the authority that signs the certificates
    DIR/security/broker-1.pem, ...    the certificate of each broker, and its key
    DIR/security/broker-1.yaml, ...   the settings of each broker
    DIR/security/admin.password       the password of the user `admin`, a super user
    DIR/security/client.properties    for librdkafka's clients, kcat -F and `barnabas --config`
    DIR/security/java.properties      for Java's clients and Kafka's tools

Existing files are kept, so a second start has the same certificates and the same password.
"""

import secrets
from pathlib import Path
from typing import Any

import yaml

from barnabas.cli.cert.authority import Authority, write_new
from barnabas.cli.cluster.local_cluster import HOST, LISTENER, LocalBroker, LocalCluster
from barnabas.cli.common.failure import CommandError

ADMIN = "admin"
MECHANISM = "SCRAM-SHA-512"
HOSTS = ("localhost", HOST)
DAYS = 3650
PASSWORD_BYTES = 24
SECRET, PUBLIC = 0o600, 0o644
OWN_KEYS = ("tls_certificate", "tls_key", "tls_authorities")
"""Keys of section `cluster` that are set here."""
JAVA = """\
security.protocol=SASL_SSL
sasl.mechanism={mechanism}
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
username="{user}" password="{password}";
ssl.truststore.type=PEM
ssl.truststore.location={authorities}
"""


def secure(cluster: LocalCluster, config: Path | None) -> None:
    """Write the missing files that the brokers of a cluster and their clients need."""
    folder = cluster.security_folder
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = Authority(folder, DAYS)
    given = _given_settings(config)
    for broker in cluster.brokers:
        name = f"broker-{broker.node_id}"
        if not (folder / f"{name}.pem").exists():
            authority.sign_broker(name, HOSTS)
        cluster.settings_file(broker.node_id).write_text(_settings(folder, broker, given))
    if not cluster.password_file.exists():
        write_new(cluster.password_file, secrets.token_urlsafe(PASSWORD_BYTES).encode(), SECRET)
    wanted = client_properties(cluster)
    lines = "".join(f"{key}={value}\n" for key, value in wanted.items())
    java = JAVA.format(
        mechanism=MECHANISM,
        user=ADMIN,
        password=wanted["sasl.password"],
        authorities=wanted["ssl.ca.location"],
    )
    for file, content in ((cluster.client_file, lines), (cluster.java_file, java)):
        file.unlink(missing_ok=True)
        write_new(file, content.encode(), SECRET)


def client_properties(cluster: LocalCluster) -> dict[str, str]:
    """Return librdkafka's properties for the admin of a cluster."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": ADMIN,
        "sasl.password": cluster.password_file.read_text().strip(),
        "ssl.ca.location": str((cluster.security_folder / "ca.pem").resolve()),
    }


def _given_settings(config: Path | None) -> dict[str, Any]:
    """Return the settings of the operator; refuse those that this module sets."""
    if config is None:
        return {}
    try:
        given = yaml.safe_load(config.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"--config {config} cannot be read: {error}") from error
    if not isinstance(given, dict):
        raise CommandError(f"--config {config} has no sections such as `broker:`")
    cluster = given.get("cluster") or {}
    clashing = [name for name in ("listeners", "security") if name in given]
    clashing += [f"cluster.{key}" for key in OWN_KEYS if key in cluster]
    if clashing:
        raise CommandError(
            f"--config {config} sets {', '.join(clashing)}, and so does --secure; "
            "remove them from the file, or omit --secure"
        )
    return given


def _settings(folder: Path, broker: LocalBroker, given: dict[str, Any]) -> str:
    """Return the settings of a broker as YAML."""
    place = folder.resolve()
    name = f"broker-{broker.node_id}"
    files = (str(place / f"{name}.pem"), str(place / f"{name}.key"), str(place / "ca.pem"))
    own: dict[str, Any] = {
        "listeners": {
            LISTENER: {
                "listen": broker.listen,
                "protocol": "SASL_SSL",
                "certificate": files[0],
                "key": files[1],
                "mechanisms": [MECHANISM, "SCRAM-SHA-256"],
            }
        },
        "security": {"authorizer": "acl", "super_users": [f"User:{ADMIN}"]},
        "cluster": {**(given.get("cluster") or {}), **dict(zip(OWN_KEYS, files, strict=True))},
    }
    return yaml.safe_dump({**given, **own}, sort_keys=False)
