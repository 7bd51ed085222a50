"""Connections of a request to brokers: as the session's user, or as the console itself."""

from barnabas.admin.connecting import settings as client_settings
from barnabas.admin.groups.group_admin import Groups
from barnabas.console.console_settings import ConsoleSettings
from barnabas.console.login.sessions import Session
from barnabas.wire.cluster_wire import Wire

CLIENT_ID = "barnabas-console"
ANSWER_TIMEOUT_S = 30.0


def properties_of(settings: ConsoleSettings, session: Session) -> list[str]:
    """Return the client properties of a session, as KEY=VALUE."""
    return [*(session.properties or settings.properties), f"client.id={CLIENT_ID}"]


def open_wire(
    settings: ConsoleSettings, session: Session, timeout_s: float = ANSWER_TIMEOUT_S
) -> Wire:
    """Return connections that act as the session's user; close them with `with`."""
    given = client_settings(settings.bootstrap, properties_of(settings, session))
    return Wire(given, CLIENT_ID, timeout_s)


def open_groups(settings: ConsoleSettings, session: Session) -> Groups:
    """Return the groups of the cluster, as the session's user may see them."""
    return Groups(settings.bootstrap, properties_of(settings, session))
