"""Errors of the HTTP API: every failure becomes a status, a sentence and a short code."""

from collections.abc import Mapping
from http import HTTPStatus

from barnabas.admin.admin_errors import AdminError
from barnabas.model.errors import ErrorCode
from barnabas.wire.wire_failures import LinkError, LoginError, RefusedError

FORBIDDEN = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
ABSENT = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
IN_THE_WAY = {
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.REASSIGNMENT_IN_PROGRESS,
    ErrorCode.UNKNOWN_MEMBER_ID,
}


class ProblemError(Exception):
    """A request cannot be answered; the message says what happened and what to do."""

    def __init__(
        self, status: HTTPStatus, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def bad_input(message: str) -> ProblemError:
    """Return the error for a request that the page or a script got wrong."""
    return ProblemError(HTTPStatus.BAD_REQUEST, "bad_input", message)


def not_found(message: str) -> ProblemError:
    """Return the error for something that does not exist."""
    return ProblemError(HTTPStatus.NOT_FOUND, "not_found", message)


def in_the_way(message: str) -> ProblemError:
    """Return the error for a change that the present state does not allow."""
    return ProblemError(HTTPStatus.CONFLICT, "conflict", message)


def too_many(message: str) -> ProblemError:
    """Return the error for a limit that protects the console."""
    return ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "too_many", message, {"Retry-After": "5"})


def problem_of(error: Exception) -> ProblemError | None:
    """Return the problem that an exception stands for; None for a bug."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RefusedError):
        return refused(error.code, str(error))
    if isinstance(error, AdminError):
        return _of_admin(error)
    return _of_connection(error) or _of_client(error)


def _of_connection(error: Exception) -> ProblemError | None:
    """Return the problem for brokers that do not answer, or not this user."""
    if isinstance(error, LoginError):
        return ProblemError(HTTPStatus.FORBIDDEN, "login_refused", str(error))
    if isinstance(error, LinkError):
        return ProblemError(HTTPStatus.BAD_GATEWAY, "no_broker", str(error))
    if isinstance(error, TimeoutError):
        return ProblemError(
            HTTPStatus.GATEWAY_TIMEOUT, "timeout", "No broker answered in time; try again"
        )
    return None


def refused(code: int, message: str) -> ProblemError:
    """Return the problem for an error code of a broker."""
    if code in FORBIDDEN:
        status = HTTPStatus.FORBIDDEN
    elif code in ABSENT:
        status = HTTPStatus.NOT_FOUND
    elif code in IN_THE_WAY:
        status = HTTPStatus.CONFLICT
    elif code == ErrorCode.REQUEST_TIMED_OUT:
        status = HTTPStatus.GATEWAY_TIMEOUT
    else:
        status = HTTPStatus.BAD_REQUEST
    return ProblemError(status, _name(code), message)


def _of_admin(error: AdminError) -> ProblemError:
    code = _kafka_code(error.__cause__)
    if code is not None:
        return refused(code, str(error))
    text = str(error)
    if text.startswith("No broker answered"):
        return ProblemError(HTTPStatus.BAD_GATEWAY, "no_broker", text)
    is_absent = text.startswith("There is no ")
    return not_found(text) if is_absent else bad_input(text)


def _of_client(error: Exception) -> ProblemError | None:
    """Return the problem for an error of librdkafka."""
    code = _kafka_code(error)
    carried = error.args[0] if error.args else None
    if code is None or carried is None:
        return None
    if code >= 0:
        return refused(code, str(carried.str()))
    return ProblemError(HTTPStatus.BAD_GATEWAY, "no_broker", str(carried.str()))


def _kafka_code(error: BaseException | None) -> int | None:
    carried = error.args[0] if error is not None and error.args else None
    if carried is None or not hasattr(carried, "code") or not hasattr(carried, "str"):
        return None
    return int(carried.code())


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"KAFKA_ERROR_{code}"
