"""Dialogues about configs of topics and brokers: DescribeConfigs, AlterConfigs,
IncrementalAlterConfigs.
"""

from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tools.compat_diff.dialogues.asking import create, each_version, topic
from tools.compat_diff.steps import Ask, Dialogue, Scene, Talk

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
COMMON_KEYS = ["retention.ms", "cleanup.policy", "max.message.bytes", "min.insync.replicas"]


def describe(
    version: int,
    *resources: tuple[int, str, list[str] | None],
    synonyms: bool = False,
    documentation: bool = False,
) -> Ask:
    """Describe resources."""
    wanted = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in resources
    ]
    request = DescribeConfigsRequest(resources=wanted, include_synonyms=synonyms)
    if version >= 3:
        request.include_documentation = documentation
    return Ask(request, version)


def describing(scene: Scene, version: int) -> Talk:
    """Describe topics and brokers, some keys or all, and missing resources."""
    a = scene.name("a")
    yield create(topic(a, config={"retention.ms": "1000", "cleanup.policy": "compact"}))
    yield describe(version)
    yield describe(version, (TOPIC, a, COMMON_KEYS), synonyms=True)
    yield describe(version, (TOPIC, a, COMMON_KEYS))
    yield describe(version, (TOPIC, a, []))
    yield describe(version, (TOPIC, a, ["no.such.config"]))
    yield describe(version, (TOPIC, a, ["retention.ms", "retention.ms"]))
    yield describe(version, (TOPIC, a, ["retention.ms"]), (TOPIC, a, ["cleanup.policy"]))
    yield describe(version, (TOPIC, a, ["retention.ms"]), documentation=True)
    yield describe(version, (TOPIC, a, None), synonyms=True)
    for name in (scene.name("unknown"), "", "a b"):
        yield describe(version, (TOPIC, name, ["retention.ms"]))
    for name in ("", "7", "x", "-1"):
        yield describe(version, (BROKER, name, ["no.such.config"]))
    for kind in (0, 1, 3, BROKER_LOGGER, CLIENT_METRICS, 100, -1):
        yield describe(version, (kind, "1", ["no.such.config"]))


def describing_broker(scene: Scene) -> Talk:
    """Describe every config of the broker."""
    del scene
    yield describe(4, (BROKER, "1", None), synonyms=True)
    yield describe(4, (BROKER, "", None))


def altering(scene: Scene, version: int) -> Talk:
    """Set all configs of a resource at once."""
    a = scene.name("a")
    yield create(topic(a))

    def alter(*resources: tuple[int, str, list[tuple[str, str | None]]], only: bool = False) -> Ask:
        wanted = [
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=k, value=v) for k, v in pairs],
            )
            for kind, name, pairs in resources
        ]
        request = alter_configs.AlterConfigsRequest(resources=wanted, validate_only=only)
        return Ask(request, version)

    yield alter()
    yield alter((TOPIC, a, [("retention.ms", "1000"), ("flush.ms", "5")]))
    yield describe(4, (TOPIC, a, [*COMMON_KEYS, "flush.ms"]))
    yield alter((TOPIC, a, [("cleanup.policy", "compact")]), only=True)
    yield alter((TOPIC, a, [("cleanup.policy", "compact")]))
    yield describe(4, (TOPIC, a, [*COMMON_KEYS, "flush.ms"]))
    yield alter((TOPIC, a, []))
    yield describe(4, (TOPIC, a, [*COMMON_KEYS, "flush.ms"]))
    tries: list[list[tuple[str, str | None]]] = [
        [("no.such.config", "1")],
        [("retention.ms", "soon")],
        [("retention.ms", None)],
        [("", "1")],
        [("retention.ms", "1"), ("retention.ms", "2")],
    ]
    for pairs in tries:
        yield alter((TOPIC, a, pairs), only=True)
        yield alter((TOPIC, a, pairs))
    yield alter((TOPIC, scene.name("unknown"), [("retention.ms", "1")]))
    yield alter((TOPIC, "", [("retention.ms", "1")]))
    yield alter((TOPIC, "a b", [("retention.ms", "1")]))
    yield alter((TOPIC, a, [("retention.ms", "1")]), (TOPIC, a, [("flush.ms", "2")]))
    for kind in (0, 1, 3, 100, -1):
        yield alter((kind, "1", [("retention.ms", "1")]))
    for name in ("7", "x"):
        yield alter((BROKER, name, [("log.retention.ms", "1")]), only=True)


def changing(scene: Scene, version: int) -> Talk:
    """Change single configs: set, delete, append, subtract."""
    a = scene.name("a")
    yield create(topic(a))

    def change(
        *changes: tuple[str, int, str | None], kind: int = TOPIC, name: str = a, only: bool = False
    ) -> Ask:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(name=k, config_operation=o, value=v)
                for k, o, v in changes
            ],
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=only
        )
        return Ask(request, version)

    for changes in (
        [("retention.ms", SET, "1000")],
        [("cleanup.policy", APPEND, "compact")],
        [("cleanup.policy", APPEND, "compact")],
        [("cleanup.policy", SUBTRACT, "delete")],
        [("cleanup.policy", SUBTRACT, "compact")],
        [("cleanup.policy", APPEND, "shred")],
        [("retention.ms", APPEND, "5")],
        [("retention.ms", SUBTRACT, "5")],
        [("retention.ms", SET, None)],
        [("retention.ms", SET, "soon")],
        [("retention.ms", DELETE, None)],
        [("retention.ms", DELETE, "5")],
        [("flush.ms", DELETE, None)],
        [("no.such.config", SET, "1")],
        [("no.such.config", DELETE, None)],
        [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
        [("retention.ms", 4, "1")],
        [("retention.ms", -1, "1")],
        [("retention.ms", SET, "5"), ("no.such.config", SET, "1")],
        [],
        [("leader.replication.throttled.replicas", APPEND, "0:1")],
        [("leader.replication.throttled.replicas", APPEND, "1:1")],
        [("leader.replication.throttled.replicas", SUBTRACT, "0:1")],
    ):
        yield change(*changes, only=True)
        yield change(*changes)
        yield describe(
            4, (TOPIC, a, [*COMMON_KEYS, "flush.ms", "leader.replication.throttled.replicas"])
        )
    yield change(("retention.ms", SET, "1"), name=scene.name("unknown"))
    yield change(("retention.ms", SET, "1"), name="")
    yield change(("retention.ms", SET, "1"), name="a b")
    for kind in (0, 1, 3, 100, -1):
        yield change(("retention.ms", SET, "1"), kind=kind, name="1")
    for name in ("7", "x"):
        yield change(("log.retention.ms", SET, "1"), kind=BROKER, name=name, only=True)
    for key in ("no.such.config", "node.id", "listeners", "num.io.threads"):
        yield change((key, SET, "1"), kind=BROKER, name="1", only=True)
    yield change(("log.retention.ms", SET, "soon"), kind=BROKER, name="", only=True)
    yield change(("log.retention.ms", SET, "5000"), kind=BROKER, name="", only=True)


def two_resources(scene: Scene) -> Talk:
    """Change two resources in one request, the same twice, one of them wrong."""
    a, b = scene.name("a"), scene.name("b")
    yield create(topic(a), topic(b))

    def resource(name: str, value: str) -> incremental_alter_configs.AlterConfigsResource:
        entry = incremental_alter_configs.AlterableConfig(
            name="retention.ms", config_operation=SET, value=value
        )
        return incremental_alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=[entry]
        )

    for resources in (
        [resource(a, "1"), resource(b, "2")],
        [resource(a, "3"), resource(a, "4")],
        [resource(a, "5"), resource(b, "soon")],
        [resource(scene.name("unknown"), "5"), resource(b, "6")],
        [],
    ):
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
        yield Ask(request, 1)
        yield describe(4, (TOPIC, a, ["retention.ms"]), (TOPIC, b, ["retention.ms"]))


def subscribing(scene: Scene) -> Talk:
    """Make, change, describe, list and delete a subscription to metrics of clients."""
    name = scene.name("subscription")

    def change(*changes: tuple[str, int, str | None], to: str = name) -> Ask:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=CLIENT_METRICS,
            resource_name=to,
            configs=[
                incremental_alter_configs.AlterableConfig(name=k, config_operation=o, value=v)
                for k, o, v in changes
            ],
        )
        return Ask(
            incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), 1
        )

    for changes in (
        [("metrics", SET, "org.apache.kafka.producer.")],
        [("metrics", APPEND, "org.apache.kafka.consumer.")],
        [("metrics", SUBTRACT, "org.apache.kafka.producer.")],
        [("metrics", SET, "*"), ("interval.ms", SET, "1000")],
        [("metrics", SET, "")],
        [("interval.ms", SET, "99")],
        [("interval.ms", SET, "100")],
        [("interval.ms", SET, "3600001")],
        [("interval.ms", SET, "soon")],
        [("interval.ms", APPEND, "5")],
        [("match", SET, "client_id=a.*,client_software_name=b")],
        [("match", SET, "client_id")],
        [("match", SET, "client_id=")],
        [("match", SET, "=a")],
        [("match", SET, "host=a")],
        [("match", SET, "client_id=(")],
        [("match", SET, "client_id=a=b")],
        [("match", SET, "")],
        [("colour", SET, "green")],
        [("colour", DELETE, None)],
        [],
    ):
        yield change(*changes)
        yield describe(4, (CLIENT_METRICS, name, None), synonyms=True)
        yield describe(1, (CLIENT_METRICS, name, ["metrics", "colour"]))
    yield change(("metrics", SET, "*"), to="")
    yield describe(4, (CLIENT_METRICS, "", None))
    yield Ask(ListConfigResourcesRequest(), 0)
    for key in ("metrics", "interval.ms", "match"):
        yield change((key, DELETE, None))
    yield Ask(ListConfigResourcesRequest(resource_types=[CLIENT_METRICS]), 1)


def listing(scene: Scene, version: int) -> Talk:
    """List the resources that have configs."""
    yield create(topic(scene.name("a")))
    if version == 0:
        yield Ask(ListConfigResourcesRequest(), 0)
        return
    for kinds in ([], [TOPIC], [BROKER], [BROKER_LOGGER], [TOPIC, BROKER], [99], [-1], [0]):
        yield Ask(ListConfigResourcesRequest(resource_types=kinds), version)


WRITTEN: dict[str, Dialogue] = {
    **each_version("configs/describe", "DescribeConfigs", describing),
    "configs/describe-broker": describing_broker,
    **each_version("configs/alter", "AlterConfigs", altering),
    **each_version("configs/change", "IncrementalAlterConfigs", changing),
    "configs/two-resources": two_resources,
    "configs/client-metrics": subscribing,
    **each_version("configs/list", "ListConfigResources", listing),
}
