"""Access to a broker: which clients may connect, what they may do, and how much they may use.

These parts follow the committed metadata from the first record on: a broker that starts knows
rights and quotas before it serves its first client.
"""

from collections.abc import Callable, Sequence

from barnabas.effects import AuditLine, Effect, Scan
from barnabas.metadata.metadata_records import MetadataRecord
from barnabas.metadata.security_image import SecurityImage, entity_of
from barnabas.metadata.security_records import ClientQuotaChanged
from barnabas.model.settings import Settings
from barnabas.model.timers import Timers
from barnabas.node.fetch_sessions import FetchSessions
from barnabas.security.audit import Audit
from barnabas.security.authentication import Authentication
from barnabas.security.authorizer import Authorizer
from barnabas.security.client_quotas import ClientQuotas

RIGHTS = "rights"
"""The lane, and the owner, of the scan that follows a change of rights."""


class AccessControl:
    """Authentication, authorization, the audit log and client quotas of one broker."""

    def __init__(
        self,
        settings: Settings,
        image: Callable[[], SecurityImage],
        sessions: FetchSessions,
        timers: Timers,
        outbox: list[Effect],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._image = image
        self._sessions = sessions
        self._outbox = outbox
        self.authentication = Authentication(settings, image, timers, random_bytes)
        self.authorizer: Authorizer | None = None
        """Decides what callers may do; None if everything is allowed."""
        if settings.security.authorizer != "none":
            self.authorizer = Authorizer(settings.security)
            self.authorizer.on_change.append(self._rights_changed)
        self.audit: Audit | None = None
        """Writes the audit log; None if there is none."""
        self._audit_logs: list[Callable[[str], None]] = []
        if settings.security.audit_file is not None:
            self._audit_logs.append(lambda line: outbox.append(AuditLine(line)))
        if settings.security.audit_file is not None or settings.security.audit_topic is not None:
            self.audit = Audit(settings.broker.node_id, self._write_audit_line)
        self.quotas = ClientQuotas(
            settings.performance.producer_quota_bytes_per_second,
            settings.performance.consumer_quota_bytes_per_second,
        )

    def metadata_changed(self, changes: Sequence[MetadataRecord] | None) -> None:
        """Act on committed records; None says that everything may be different."""
        if self.authorizer is not None:
            self.authorizer.changed(changes, self._image())
        if changes is None:
            self.quotas.replace(self._image().quotas)
            return
        for change in changes:
            if isinstance(change, ClientQuotaChanged):
                self.quotas.change(entity_of(change.entity), change.key, change.value)

    def write_audit_lines_to(self, log: Callable[[str], None]) -> None:
        """Write the lines of the audit log to another place as well."""
        self._audit_logs.append(log)

    def _write_audit_line(self, line: str) -> None:
        for log in self._audit_logs:
            log(line)

    def _rights_changed(self) -> None:
        """Have the fetches that wait check their rights again."""
        if self._sessions.guarded:
            self._outbox.append(Scan(RIGHTS, RIGHTS, self._sessions.look_again()))
