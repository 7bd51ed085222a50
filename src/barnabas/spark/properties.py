"""What `kafka.*` options may say: librdkafka's names, with a word on Java's.

Spark's connector hands `kafka.*` to the Java client. Here they go to librdkafka, and to our own
Fetch where the connection is plaintext. Most names are the same. Those that only Java knows are
refused with the name to use instead, since a setting that is dropped without a word is worse.
"""

from collections.abc import Mapping

from barnabas.spark.failures import OptionError

PREFIX = "kafka."
BOOTSTRAP = "bootstrap.servers"

_AS_BYTES = (
    "leave it out: key and value come as bytes; decode them with cast, from_json or from_avro"
)
_BY_SPARK = "leave it out: Spark keeps the offsets in its checkpoint"
_PEM = "name a PEM file in kafka.ssl.ca.location"
_IN_PEM = "leave it out: a PEM file of certificates has no password and no type"
_OAUTH = "use kafka.sasl.oauthbearer.method=oidc and kafka.sasl.oauthbearer.token.endpoint.url"

JAVA_ONLY: Mapping[str, str] = {
    "sasl.jaas.config": "give kafka.sasl.username and kafka.sasl.password instead",
    "sasl.login.class": _OAUTH,
    "sasl.login.callback.handler.class": _OAUTH,
    "sasl.client.callback.handler.class": _OAUTH,
    "ssl.truststore.location": _PEM,
    "ssl.truststore.certificates": "use kafka.ssl.ca.pem",
    "ssl.truststore.password": _IN_PEM,
    "ssl.truststore.type": _IN_PEM,
    "ssl.keystore.type": "leave it out: kafka.ssl.keystore.location takes PKCS#12",
    "ssl.keystore.key": "use kafka.ssl.key.pem",
    "ssl.keystore.certificate.chain": "use kafka.ssl.certificate.pem",
    "ssl.protocol": "leave it out: OpenSSL settles the version",
    "ssl.enabled.protocols": "leave it out: OpenSSL settles the version",
    "ssl.secure.random.implementation": "leave it out",
    "security.providers": "use kafka.ssl.providers",
    "key.deserializer": _AS_BYTES,
    "value.deserializer": _AS_BYTES,
    "auto.offset.reset": "use the option startingOffsets",
    "enable.auto.commit": _BY_SPARK,
    "auto.commit.interval.ms": _BY_SPARK,
    "interceptor.classes": "leave it out: records come as they are",
    "partition.assignment.strategy": "leave it out: Spark gives partitions to tasks",
    "max.poll.records": "use the option maxOffsetsPerTrigger",
    "max.poll.interval.ms": "leave it out: nothing joins a group here",
    "fetch.max.wait.ms": "use kafka.fetch.wait.max.ms",
    "receive.buffer.bytes": "use kafka.socket.receive.buffer.bytes",
    "send.buffer.bytes": "use kafka.socket.send.buffer.bytes",
    "request.timeout.ms": "use kafka.socket.timeout.ms",
    "default.api.timeout.ms": "use kafka.socket.timeout.ms",
    "client.dns.lookup": "leave it out: every address of a name is tried",
    "metric.reporters": "use kafka.statistics.interval.ms",
    "connections.max.idle.ms": "leave it out: a closed connection is opened again",
}


def client_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return what the options say to the client, under librdkafka's names."""
    properties = {
        name[len(PREFIX) :]: value for name, value in options.items() if name.startswith(PREFIX)
    }
    if BOOTSTRAP in options:
        properties.setdefault(BOOTSTRAP, options[BOOTSTRAP])
    for name in properties:
        if name in JAVA_ONLY:
            raise OptionError(f"kafka.{name} is a property of Java's client; {JAVA_ONLY[name]}")
    if not properties.get(BOOTSTRAP, "").strip():
        raise OptionError(
            "Say where the brokers are: .option('kafka.bootstrap.servers', 'HOST:PORT')"
        )
    return properties


def is_plaintext(properties: Mapping[str, str]) -> bool:
    """Whether connections need neither TLS nor a password."""
    return properties.get("security.protocol", "plaintext").lower() == "plaintext"


def is_read_committed(properties: Mapping[str, str]) -> bool:
    """Whether open and aborted transactions stay hidden; Java's default is that they do not."""
    level = properties.get("isolation.level", "read_uncommitted").lower()
    if level not in {"read_committed", "read_uncommitted"}:
        raise OptionError(
            f"kafka.isolation.level is {level!r}; write read_committed or read_uncommitted"
        )
    return level == "read_committed"
