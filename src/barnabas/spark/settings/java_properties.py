"""Tables of every setting of the Java consumer, producer and admin client (3.9 to 4.3), and how
each is handled here.

Spark's own connector passes `kafka.*` to Java's clients. This one passes them to librdkafka, and to
our own Fetch and Produce if these support the authentication. A setting is one of these:

    same        librdkafka has it under the same name; it is passed on
    renamed     librdkafka has it under another name; it is passed on under that one
    translated  its value must change, too: `spark/client_properties.py` does that
    no effect   it does not apply here, and rows are the same without it; a warning says so
    refused     rows, their place or the security would differ from the setting; the message has
                the name to use instead

`tests/unit/spark/test_java_properties.py` compares the tables with Java's lists of names.
"""

from collections.abc import Mapping

CONSUMER = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "internal.leave.group.on.close",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "isolation.level",
        "key.deserializer",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "value.deserializer",
    }
)
"""Settings of reads only; a write ignores them."""

PRODUCER = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "metadata.max.idle.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "retries",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
        "value.serializer",
    }
)
"""Settings of writes only; a read ignores them."""

SAME = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "batch.size",
        "bootstrap.servers",
        "check.crcs",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "compression.type",
        "delivery.timeout.ms",
        "enable.idempotence",
        "enable.metrics.push",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "group.id",
        "isolation.level",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "ssl.cipher.suites",
        "ssl.key.password",
        "ssl.keystore.password",
        "transaction.timeout.ms",
    }
)

RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}

TRANSLATED = frozenset(
    {
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "receive.buffer.bytes",
        "request.timeout.ms",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "send.buffer.bytes",
        "ssl.endpoint.identification.algorithm",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)

_NO_GROUP = "tasks join no consumer group"
_METRICS = "set kafka.statistics.interval.ms for librdkafka's statistics"
_BY_SPARK = "Spark keeps the offsets in its checkpoint"
_TOKEN_RENEWAL = "librdkafka decides when to fetch the next token"  # noqa: S105 - a sentence
_TOKEN_CHECK = "brokers check tokens, the client does not"  # noqa: S105 - a sentence
_KERBEROS = "kafka.sasl.kerberos.min.time.before.relogin says how often tickets are renewed"
_TLS = "OpenSSL has one algorithm for it"

NO_EFFECT: Mapping[str, str] = {
    "auto.commit.interval.ms": _BY_SPARK,
    "auto.include.jmx.reporter": _METRICS,
    "exclude.internal.topics": "subscribePattern never matches internal topics",
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "internal.leave.group.on.close": _NO_GROUP,
    "internal.throw.on.fetch.stable.offset.unsupported": _BY_SPARK,
    "max.block.ms": "kafka.delivery.timeout.ms says how long a row may take",
    "max.poll.interval.ms": _NO_GROUP,
    "max.poll.records": "rows come in Arrow batches; maxOffsetsPerTrigger limits a micro-batch",
    "metadata.max.idle.ms": "kafka.metadata.max.age.ms says how long metadata is kept",
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "partition.assignment.strategy": "Spark gives partitions to tasks",
    "partitioner.adaptive.partitioning.enable": "rows without a key go to each partition in turn",
    "partitioner.availability.timeout.ms": "rows without a key go to each partition in turn",
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.login.connect.timeout.ms": _TOKEN_RENEWAL,
    "sasl.login.read.timeout.ms": _TOKEN_RENEWAL,
    "sasl.login.refresh.buffer.seconds": _TOKEN_RENEWAL,
    "sasl.login.refresh.min.period.seconds": _TOKEN_RENEWAL,
    "sasl.login.refresh.window.factor": _TOKEN_RENEWAL,
    "sasl.login.refresh.window.jitter": _TOKEN_RENEWAL,
    "sasl.login.retry.backoff.max.ms": _TOKEN_RENEWAL,
    "sasl.login.retry.backoff.ms": _TOKEN_RENEWAL,
    "sasl.oauthbearer.clock.skew.seconds": _TOKEN_CHECK,
    "sasl.oauthbearer.expected.audience": _TOKEN_CHECK,
    "sasl.oauthbearer.expected.issuer": _TOKEN_CHECK,
    "sasl.oauthbearer.header.urlencode": "librdkafka sends the client's id and secret as they are",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _TOKEN_CHECK,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _TOKEN_CHECK,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _TOKEN_CHECK,
    "sasl.oauthbearer.jwks.endpoint.url": _TOKEN_CHECK,
    "sasl.oauthbearer.scope.claim.name": _TOKEN_CHECK,
    "session.timeout.ms": _NO_GROUP,
    "share.acknowledgement.mode": "a read is no share consumer",
    "share.acquire.mode": "a read is no share consumer",
    "socket.connection.setup.timeout.max.ms": "kafka.socket.connection.setup.timeout.ms holds for "
    "every attempt",
    "ssl.enabled.protocols": "OpenSSL settles the version with the broker",
    "ssl.keymanager.algorithm": _TLS,
    "ssl.protocol": "OpenSSL settles the version with the broker",
    "ssl.secure.random.implementation": _TLS,
    "ssl.trustmanager.algorithm": _TLS,
}

_AS_BYTES = (
    "leave it out: key and value come as bytes; decode them with cast, from_json or from_avro"
)
OAUTH = "use kafka.sasl.oauthbearer.method=oidc and kafka.sasl.oauthbearer.token.endpoint.url"
_NO_CLASS = "leave it out: Java classes cannot run here"

REFUSED: Mapping[str, str] = {
    "auto.offset.reset": "use the option startingOffsets",
    "bootstrap.controllers": "name brokers in kafka.bootstrap.servers",
    "config.providers": "write the values themselves; Python can read them from where they are",
    "enable.auto.commit": f"leave it out: {_BY_SPARK}",
    "interceptor.classes": _NO_CLASS,
    "key.deserializer": _AS_BYTES,
    "key.serializer": "leave it out: bytes are written as they are; cast column key",
    "partitioner.class": "leave it out: keys go where Java's default puts them; "
    "a column partition overrides that",
    "partitioner.ignore.keys": "leave it out, and column key too, or set column partition",
    "sasl.client.callback.handler.class": OAUTH,
    "sasl.login.class": OAUTH,
    "sasl.oauthbearer.jwt.retriever.class": OAUTH,
    "sasl.oauthbearer.jwt.validator.class": f"leave it out: {_TOKEN_CHECK}",
    "security.providers": "use kafka.ssl.providers",
    "ssl.engine.factory.class": _NO_CLASS,
    "ssl.provider": "use kafka.ssl.providers",
    "transaction.two.phase.commit.enable": "leave it out: the sink ends its transactions itself",
    "transactional.id": "set the option transactionalIdPrefix; the rest of the id names the task",
    "value.deserializer": _AS_BYTES,
    "value.serializer": "leave it out: bytes are written as they are; cast column value",
}
