"""Defines the faults that only a cluster with security has: certificates and quotas that change.

Clients must not notice a new certificate, nor a wrong one. After each fault the storm checks that
new connections to every node get the certificate that is in its file.
"""

from collections.abc import Callable

from barnabas.admin.admin_errors import AdminError
from barnabas.testing.waiting import eventually
from barnabas.wire.wire_failures import LinkError, RefusedError
from tests.support.clusters.cluster_faults import Fault, Scene
from tests.support.clusters.cluster_ground import SECURITY
from tests.support.clusters.cluster_security import (
    KEPT,
    ClusterSecurity,
    Damage,
    reload_certificate,
)
from tests.support.clusters.cluster_workload import PRODUCER

RELOAD, WRONG, QUOTA = "certificate reload", "wrong certificate", "quota"
QUOTA_KEY = "producer_byte_rate"
QUOTA_BYTES = (20_000, 100_000)
"""Less than the producers of a storm send, for each broker."""
PATIENCE_S = 60.0


class CertificateReload:
    """Every node gets a new certificate of the same authority while clients work."""

    hold_s = (0.0, 1.0)
    needs = SECURITY

    def begin(self, scene: Scene, number: int) -> None:
        """Replace the files of all nodes, and send SIGHUP."""
        del number
        for each, node in scene.cluster.nodes.items():
            _security(scene).renew(each)
            reload_certificate(node)

    def end(self, scene: Scene, number: int) -> None:
        """Do nothing: the new certificates stay."""


class WrongCertificate:
    """A node gets files that it cannot use: it must refuse them, and keep the certificate."""

    hold_s = (0.5, 2.0)
    needs = SECURITY

    def begin(self, scene: Scene, number: int) -> None:
        """Replace the files by wrong ones, and check that the node keeps its old certificate."""
        security, node = _security(scene), scene.node(number)
        damage = scene.rng.choice(list(Damage))
        scene.notes.append(damage.value)
        before, kept = security.served(number), len(node.log_lines(KEPT))
        security.damage(number, damage)
        reload_certificate(node)
        try:
            node.wait_for_log(KEPT, kept + 1, PATIENCE_S)
            eventually(lambda: security.served(number) == before != b"", PATIENCE_S)
        except AssertionError:
            scene.problems.append(f"node {number} does not keep its certificate: {damage.value}")

    def end(self, scene: Scene, number: int) -> None:
        """Put a right certificate in place."""
        _security(scene).renew(number)
        reload_certificate(scene.node(number))


class Quota:
    """The producers get a small quota, which is removed again."""

    hold_s = (1.0, 4.0)
    needs = SECURITY

    def begin(self, scene: Scene, number: int) -> None:
        """Set the quota."""
        del number
        rate = scene.rng.randint(*QUOTA_BYTES)
        scene.notes.append(f"{QUOTA_KEY}={rate}")
        insist(lambda: _security(scene).set_quota(PRODUCER, QUOTA_KEY, rate))

    def end(self, scene: Scene, number: int) -> None:
        """Remove the quota."""
        del number
        insist(lambda: _security(scene).remove_quota(PRODUCER, QUOTA_KEY))


def insist(change: Callable[[], None]) -> None:
    """Repeat a change of metadata until a controller has accepted it."""

    def succeeds() -> bool:
        try:
            change()
        except (AdminError, LinkError, RefusedError, OSError):
            return False
        return True

    eventually(succeeds, PATIENCE_S)


def _security(scene: Scene) -> ClusterSecurity:
    assert scene.security is not None, "the fault needs a cluster with security"
    return scene.security


SECURITY_FAULTS: dict[str, Callable[[], Fault]] = {
    RELOAD: CertificateReload,
    WRONG: WrongCertificate,
    QUOTA: Quota,
}
"""The faults by name; each draw creates a new one."""
