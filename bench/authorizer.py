"""Measures the authorizer: the CPU time of a decision among 10,000 ACLs.

    python -m bench.authorizer

Two thirds of the ACLs are literal and one third prefixed, of 500 principals on 700 applications;
one in ten denies, one in five is about one host. Half of the decisions find ACLs of the principal.
"""

import time
from collections.abc import Callable
from random import Random

from barnabas.handlers.authorization import READ_TOPIC
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.security_records import AclAdded
from barnabas.model.callers import CLIENT_LISTENER, Caller, Principal
from barnabas.model.permissions import Operation, PatternType, PermissionType, ResourceType
from barnabas.model.security_settings import SecuritySettings
from barnabas.security.authorizer import Authorizer

ACLS, PRINCIPALS, APPLICATIONS = 10_000, 500, 700
ROUNDS = 20
CALLER = Caller(Principal("User", "user-7"), CLIENT_LISTENER, "10.0.0.7")


def acl(number: int, rng: Random) -> AclAdded:
    """Return one of the ACLs."""
    prefixed = number % 3 == 0
    application = f"app-{number % APPLICATIONS}-"
    return AclAdded(
        acl_id=str(number),
        resource_type=ResourceType.TOPIC,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        resource_name=application if prefixed else f"{application}topic-{number}",
        principal=f"User:user-{number % PRINCIPALS}",
        host="*" if number % 5 else f"10.0.0.{number % 250}",
        operation=rng.choice((Operation.READ, Operation.WRITE, Operation.DESCRIBE)),
        permission_type=PermissionType.ALLOW if number % 10 else PermissionType.DENY,
    )


def best_us(act: Callable[[], None], count: int) -> float:
    """Return the CPU time of one of so many decisions, in the best of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        act()
        times.append(time.process_time_ns() - start)
    return min(times) / count / 1000


def main() -> None:
    """Measure decisions, and the change of one ACL."""
    rng, image = Random(1), SecurityImage()
    authorizer = Authorizer(SecuritySettings())
    image.acls = {str(number): acl(number, rng) for number in range(ACLS)}
    authorizer.changed(None, image)
    changed = acl(0, rng)
    names = [f"app-{n % APPLICATIONS}-topic-{n}" for n in range(0, ACLS, 7)]

    def decide() -> None:
        for name in names:
            authorizer.allows(CALLER, READ_TOPIC, name)

    def decide_anew() -> None:
        authorizer.changed([changed], image)
        decide()

    def change() -> None:
        authorizer.changed([changed], image)

    for what, act, count in (
        ("a decision that is not remembered", decide_anew, len(names)),
        ("a decision that is remembered", decide, len(names)),
        ("the change of one ACL", change, 1),
    ):
        print(f"{what:36} {best_us(act, count):7.2f} us")


if __name__ == "__main__":
    main()
