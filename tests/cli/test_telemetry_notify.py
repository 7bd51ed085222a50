"""Tests `barnabas telemetry notify` and `silence`, as a user types them, with HTTP servers."""

import hashlib
import hmac
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

pytestmark = pytest.mark.compat

Run = Callable[..., subprocess.CompletedProcess[bytes]]
PATIENCE_S = 60.0


class Receiver(ThreadingHTTPServer):
    """Takes requests, and responds with a given status, or not until the test is over."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int | str] = []
        self.over = threading.Event()
        self.reached = threading.Event()
        """Set by the first request, for any response."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def taken(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.requests]

    def alerts(self) -> list[tuple[str, str]]:
        """Return the bodies that a webhook got."""
        return [(a["alert_id"], a["state"]) for body in self.taken for a in body["alerts"]]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        if answer == 200:
            self.server.requests.append((self.path, dict(self.headers), body))
        self.server.reached.set()
        if answer == "slow":
            self.server.over.wait(PATIENCE_S)
            return
        assert isinstance(answer, int)
        self.send_response(answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


class Alerts:
    """A topic of alerts, and the command that follows it."""

    def __init__(self, run: Run, bootstrap: str, topic: str) -> None:
        self._run, self._bootstrap, self._topic = run, bootstrap, topic
        self._silences, self._group = f"silences-{topic}", f"notify-{topic}"

    def publish_alert(self, alert_id: str, state: str, **columns: object) -> None:
        known = {
            "alert_id": alert_id,
            "state": state,
            "finding": "parked_memory",
            "severity": "warning",
            "gpu_id": "GPU-1",
            "hostname": "node-1",
            "namespace": "ml",
            "first_seen": "2020-11-18T11:00:00.000Z",
            "last_seen": "2020-11-18T11:30:00.000Z",
            "message": "held",
            "action": "ask",
            **columns,
        }
        self.send(json.dumps(known).encode())

    def send(self, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        producer.produce(self._topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0

    def notify(self, *words: str) -> tuple[dict[str, Any], str]:
        done = self._run(
            *("telemetry", "notify", "--once", "--json"),
            *("--topic", self._topic, "--silences", self._silences, "--group", self._group),
            *words,
        )
        (account,) = json.loads(done.stdout)
        return account, done.stderr.decode()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start the command that follows the topic until it is stopped."""
        command = [sys.executable, "-m", "barnabas.cli", "telemetry", "notify"]
        places = ("--topic", self._topic, "--silences", self._silences, "--group", self._group)
        known = ("--json", "--bootstrap", self._bootstrap)
        return subprocess.Popen([*command, *places, *known, *words], stdout=subprocess.PIPE)

    def silence(self, *words: str) -> Any:
        done = self._run("telemetry", "silence", *words, "--topic", self._silences)
        return done.stdout.decode()


@pytest.fixture
def alerts(run: Run, bootstrap: str, topic: str, group_support: None) -> Alerts:
    return Alerts(run, bootstrap, topic)


def test_a_first_start_sends_active_alerts_and_a_restart_continues(
    alerts: Alerts, receiver: Receiver
) -> None:
    alerts.publish_alert("old", "raised")
    alerts.publish_alert("old", "cleared")
    alerts.publish_alert("a", "raised")
    alerts.notify("--webhook", receiver.url)
    assert receiver.alerts() == [("a", "raised")]
    account, _ = alerts.notify("--webhook", receiver.url)
    assert account["delivered"] == 0
    alerts.publish_alert("a", "still")
    alerts.publish_alert("a", "cleared")
    alerts.notify("--webhook", receiver.url)
    assert receiver.alerts() == [("a", "raised"), ("a", "still"), ("a", "cleared")]


def test_a_webhook_can_check_the_sender(alerts: Alerts, receiver: Receiver, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    alerts.publish_alert("a", "raised")
    alerts.notify("--webhook", f"{receiver.url}/hook?x=1", "--secret-file", str(secret))
    ((path, headers, body),) = receiver.requests
    signed = f"{headers['X-Barnabas-Timestamp']}.".encode() + body
    expected = hmac.new(b"hush", signed, hashlib.sha256).hexdigest()
    assert path == "/hook?x=1"
    assert headers["X-Barnabas-Signature"] == f"sha256={expected}"


def test_an_endpoint_that_fails_and_is_slow_gets_every_alert_in_the_end(
    alerts: Alerts, receiver: Receiver
) -> None:
    receiver.answers = [503, "slow"]
    for number in range(5):
        alerts.publish_alert(f"a{number}", "raised", gpu_id=f"GPU-{number}")
    account, log = alerts.notify("--webhook", receiver.url, "--timeout", "1s")
    assert [name for name, _ in receiver.alerts()] == [f"a{number}" for number in range(5)]
    assert (account["delivered"], account["given_up"]) == (5, 0)
    assert "HTTP 503" in log
    assert "no answer within 1 s" in log


def test_an_alert_in_flight_at_a_kill_is_sent_by_the_next_start(
    alerts: Alerts, receiver: Receiver
) -> None:
    receiver.answers = ["slow"]
    alerts.publish_alert("a", "raised")
    with alerts.start("--webhook", receiver.url) as running:
        assert receiver.reached.wait(PATIENCE_S)
        running.kill()
    assert receiver.alerts() == []
    alerts.notify("--webhook", receiver.url)
    assert receiver.alerts() == [("a", "raised")]


def test_sigterm_ends_it_with_an_account(alerts: Alerts, receiver: Receiver) -> None:
    alerts.publish_alert("a", "raised")
    with alerts.start("--webhook", receiver.url) as running:
        assert receiver.reached.wait(PATIENCE_S)
        running.terminate()
        said, _ = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    assert json.loads(said)[0]["delivered"] == 1
    account, _ = alerts.notify("--webhook", receiver.url)
    assert account["delivered"] == 0


def test_given_up_alerts_are_logged_with_a_count_and_the_rest_is_sent(
    alerts: Alerts, receiver: Receiver
) -> None:
    receiver.answers = [400, 400]
    alerts.send(b"no alert")
    alerts.publish_alert("a", "raised")
    alerts.publish_alert("b", "raised", gpu_id="GPU-2")
    account, log = alerts.notify("--webhook", receiver.url)
    assert receiver.alerts() == [("b", "raised")]
    assert (account["delivered"], account["given_up"]) == (1, 1)
    assert "alerts given up" in log
    again, _ = alerts.notify("--webhook", receiver.url)
    assert again["delivered"] == again["given_up"] == 0


def test_a_dead_endpoint_is_given_up_and_reported(alerts: Alerts) -> None:
    alerts.publish_alert("a", "raised")
    account, log = alerts.notify("--webhook", "http://127.0.0.1:1", "--give-up-after", "1s")
    assert account["given_up"] == 1
    assert "alerts given up" in log


def test_alertmanager_gets_active_alerts_at_each_start_and_their_end(
    alerts: Alerts, receiver: Receiver
) -> None:
    alerts.publish_alert("a", "raised")
    alerts.notify("--alertmanager", receiver.url)
    account, _ = alerts.notify("--alertmanager", receiver.url)
    assert account["resent"] == 1
    alerts.publish_alert("a", "cleared")
    alerts.notify("--alertmanager", receiver.url)
    assert {path for path, _, _ in receiver.requests} == {"/api/v2/alerts"}
    sent = [alert for body in receiver.taken for alert in body]
    assert len({json.dumps(each["labels"]) for each in sent}) == 1
    assert [each["annotations"]["state"] for each in sent][:: len(sent) - 1] == [
        "raised",
        "cleared",
    ]
    assert sent[-1]["endsAt"] == "2020-11-18T11:30:00.000Z"


def test_silences_are_added_listed_kept_and_removed(alerts: Alerts, receiver: Receiver) -> None:
    words = ("--host", "node-*", "--for", "1h", "--author", "ada", "--reason", "new fans")
    made = json.loads(alerts.silence("add", *words, "--json"))
    assert json.loads(alerts.silence("list", "--json")) == [made]
    assert (made["matchers"], made["author"]) == ({"host": "node-*"}, "ada")
    alerts.publish_alert("a", "raised")
    account, _ = alerts.notify("--webhook", receiver.url)
    assert (account["silenced"], account["delivered"]) == (1, 0)
    alerts.silence("remove", made["id"])
    assert json.loads(alerts.silence("list", "--json")) == []
    alerts.publish_alert("a", "still")
    alerts.notify("--webhook", receiver.url)
    assert receiver.alerts() == [("a", "still")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["notify"], b"Pass --webhook URL"),
        (["notify", "--webhook", "here"], b"is not an address"),
        (["notify", "--webhook", "http://h", "--secret-file", "no/file"], b"There is no file"),
        (["silence", "add", "--for", "1h", "--reason", "x"], b"needs a pattern"),
        (["silence", "add", "--host", "a", "--reason", "x"], b"Pass --for DURATION or --to TIME"),
        (["silence", "remove", "nothing", "--topic", f"s-{uuid4().hex}"], b"There is no silence"),
    ],
)
def test_errors_say_what_to_change(run: Run, words: list[str], sentence: bytes) -> None:
    assert sentence in run("telemetry", *words, code=1).stderr
