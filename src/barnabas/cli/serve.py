"""`barnabas serve`: run a broker in the foreground.

The only command that uses argparse: the libraries of the other commands would delay its start.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.model.errors import BrokerError, ConfigError, SyncFailedError, TooOldError

if TYPE_CHECKING:
    from barnabas.app import BrokerProcess, FirstAdmin
    from barnabas.cli.common.child_console import ChildConsole

CANNOT_START = 1
WRONG_USE = 2
SYNC_FAILED = 70
ADMIN_PASSWORD = "BARNABAS_BOOTSTRAP_ADMIN_PASSWORD"  # noqa: S105 - the name of a variable
FOR_COMMANDS = {
    "BARNABAS_BOOTSTRAP",
    "BARNABAS_PROBE_HTTP",
    "BARNABAS_CLIENT_CONFIG",
    "BARNABAS_USER_PASSWORD",
    ADMIN_PASSWORD,
}
"""Variables of other commands, and one with a secret: they are not settings."""

EXAMPLE = """example:
  barnabas serve --listen 127.0.0.1:9092 --data ./data
  barnabas serve --listen 0.0.0.0:9092 --data /var/lib/barnabas --config barnabas.yaml
  barnabas serve --listen 127.0.0.1:9092 --data ./data --http 127.0.0.1:9644   # metrics, health
  barnabas serve --listen 127.0.0.1:0 --json          # a free port, printed in one line of JSON
  barnabas serve --console 127.0.0.1:8080             # with the web console

one of three brokers, each with its own id and the same voters:
  barnabas serve --node-id 1 --listen 10.0.0.1:9092 --peer-listen 10.0.0.1:9192 --data ./data \\
    --voters 1@10.0.0.1:9192,2@10.0.0.2:9192,3@10.0.0.3:9192
"""

HINTS = """
Next, in another terminal:
  {barnabas} topic create greetings --partitions 3 --bootstrap {address}
  echo "hello, castle" | {barnabas} produce greetings --bootstrap {address}
  {barnabas} consume greetings --from beginning --until end --bootstrap {address}
Any Kafka client works unchanged; its bootstrap server is {address}. Ctrl-C stops the broker.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="barnabas serve",
        description="Run a broker until SIGTERM or Ctrl-C; a second one stops it immediately.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--listen",
        metavar="[NAME=]HOST:PORT",
        action="append",
        help="address to listen on; port 0 takes a free port. With listeners in the settings file, "
        "NAME is one of them, and the flag may be repeated",
    )
    made.add_argument("--data", metavar="DIR", help="the directory for all data")
    made.add_argument("--config", metavar="FILE", type=Path, help="settings file in YAML")
    made.add_argument("--node-id", metavar="N", help="the id of this broker in the cluster")
    made.add_argument(
        "--peer-listen", metavar="HOST:PORT", help="address to listen on for other brokers"
    )
    made.add_argument(
        "--allow-plaintext-peers",
        action="store_true",
        help="let other brokers connect over a network without TLS; any process that reaches that "
        "port can do everything",
    )
    made.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve metrics and health over HTTP; there is no password, so keep it private",
    )
    made.add_argument(
        "--voters",
        metavar="LIST",
        help="voters of the metadata quorum: 1@host:port,2@host:port,...; the same for all brokers",
    )
    made.add_argument("--roles", metavar="ROLES", help="both (the default), broker or controller")
    made.add_argument(
        "--json", action="store_true", help="print the ready line and the log as JSON"
    )
    made.add_argument("--log-level", default="info", help="debug, info, warning or error")
    made.add_argument(
        "--bootstrap-admin",
        metavar="NAME",
        help="create this user in a cluster that has no users; list it in security.super_users",
    )
    made.add_argument(
        "--bootstrap-admin-password-file",
        metavar="FILE",
        type=Path,
        help=f"the file with its password; default: the variable {ADMIN_PASSWORD}",
    )
    made.add_argument(
        "--console",
        metavar="HOST:PORT",
        help="serve the web console of this broker there, in a process that ends with the broker",
    )
    made.add_argument("--hints", action="store_true", help="when ready, show example commands")
    made.add_argument("--print-config", action="store_true", help="print all settings and exit")
    return made


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    options = parser().parse_args(arguments)
    from barnabas import config, logs

    if options.print_config:
        sys.stdout.write(config.example())
        return 0
    try:
        logs.configure(json=options.json, level=options.log_level, stream=sys.stderr)
        environment = {k: v for k, v in os.environ.items() if k not in FOR_COMMANDS}
        settings = config.load(options.config, environment, _flags(options))
        if options.console is not None:
            _check_console(options.console)
        from barnabas.app import serve

        children: list[ChildConsole] = []

        def ready(broker: "BrokerProcess") -> None:
            _say_ready(options, broker)
            if options.console is not None:
                children.append(_start_console(options, broker))

        try:
            serve(settings, ready, _first_admin(options))
        finally:
            for child in children:
                child.stop()
    except (BrokerError, SyncFailedError, TooOldError) as error:
        sys.stderr.write(f"barnabas: {error}\n")
        return _exit_code(error)
    except OSError as error:
        sys.stderr.write(f"barnabas: system error: {error}\n")
        return CANNOT_START
    return 0


def _first_admin(options: argparse.Namespace) -> "FirstAdmin | None":
    """Return the user that `--bootstrap-admin` names, with its password from a file or variable."""
    from barnabas.app import FirstAdmin

    name, file = options.bootstrap_admin, options.bootstrap_admin_password_file
    if name is None:
        if file is not None:
            raise ConfigError("--bootstrap-admin-password-file needs --bootstrap-admin NAME")
        return None
    try:
        password = os.environ.get(ADMIN_PASSWORD, "") if file is None else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--bootstrap-admin-password-file {file}: {error}") from None
    password = password.rstrip("\r\n")
    if not name or not password:
        raise ConfigError(
            "--bootstrap-admin needs a name, and a password in the file that "
            f"--bootstrap-admin-password-file names or in the variable {ADMIN_PASSWORD}"
        )
    return FirstAdmin(name, password)


def _exit_code(error: BaseException) -> int:
    if isinstance(error, ConfigError):
        return WRONG_USE
    return SYNC_FAILED if isinstance(error, SyncFailedError) else CANNOT_START


def _flags(options: argparse.Namespace) -> dict[str, object]:
    flags: dict[str, object] = {
        "observability.http_listen": options.http,
        "broker.data_dir": options.data,
        "broker.id": options.node_id,
        "cluster.voters": options.voters,
        "cluster.roles": options.roles,
    }
    for listen in options.listen or ():
        name, separator, address = listen.rpartition("=")
        host, port = _host_and_port("--listen", address)
        if separator:
            flags[f"listeners.{name}.listen"] = address
        else:
            flags |= {"broker.host": host, "broker.port": port}
    if options.peer_listen is not None:
        host, port = _host_and_port("--peer-listen", options.peer_listen)
        flags |= {"cluster.host": host, "cluster.port": port}
    if options.allow_plaintext_peers:
        flags["cluster.allow_plaintext_peers"] = True
    return flags


def _host_and_port(flag: str, address: str) -> tuple[str, str]:
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit():
        raise ConfigError(f"{flag} {address!r} is not HOST:PORT; write 127.0.0.1:9092, for example")
    return host.strip("[]"), port


def _say_ready(options: argparse.Namespace, broker: "BrokerProcess") -> None:
    address = _shown(*broker.node.advertised)
    peers = None if broker.peer_address is None else _shown(*broker.peer_address)
    started = time.clock_gettime(time.CLOCK_MONOTONIC) - _process_age_origin()
    if options.json:
        line: dict[str, object] = {"event": "ready", "listen": address, "pid": os.getpid()}
        if len(broker.listeners) > 1:
            line["listeners"] = {name: _shown(*place) for name, place in broker.listeners.items()}
        if peers is not None:
            line["peer_listen"] = peers
        if broker.operators is not None:
            line["http"] = _shown(*broker.operators.address)
        if started > 0:
            line["seconds"] = round(started, 3)
        sys.stdout.write(json.dumps(line) + "\n")
    else:
        took = f" after {started:.2f} s" if started > 0 else ""
        named = [f"{_shown(*place)} ({name})" for name, place in broker.listeners.items()]
        shown = ", ".join(named) if len(named) > 1 else address
        others = "" if peers is None else f", for other brokers on {peers},"
        if broker.operators is not None:
            others += f" with metrics on http://{_shown(*broker.operators.address)}/"
        sys.stdout.write(f"barnabas is ready on {shown}{others}{took}\n")
        if options.hints:
            command = Path(sys.argv[0])
            program = command if not command.is_absolute() else _relative(command)
            sys.stdout.write(HINTS.format(barnabas=program, address=address))
    sys.stdout.flush()


def _check_console(listen: str) -> None:
    """Raise if no console can listen there: nothing starts then."""
    host, _ = _host_and_port("--console", listen)
    from barnabas.cli.common.child_console import require_extra
    from barnabas.cli.common.failure import CommandError
    from barnabas.console.console_settings import is_loopback

    if not is_loopback(host):
        raise ConfigError(
            f"--console {listen} could be reached by other computers without a login; write "
            "127.0.0.1:8080, or run a console of its own: barnabas console --login password"
        )
    try:
        require_extra()
    except CommandError as error:
        raise ConfigError(f"--console: {error}") from None


def _start_console(options: argparse.Namespace, broker: "BrokerProcess") -> "ChildConsole":
    """Start the console of this broker; if it ends, it says why and the broker goes on."""
    from barnabas import logs
    from barnabas.cli.common.child_console import ChildConsole

    log = logs.get("barnabas")

    def say(url: str) -> None:
        line = json.dumps({"event": "console", "url": url})
        text = line if options.json else f"The web console is at {url}"
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    operators = broker.operators
    metrics = [] if operators is None else ["--metrics", _shown(*operators.address)]
    return ChildConsole(
        _shown(*broker.node.advertised),
        options.console,
        metrics,
        on_ready=say,
        on_end=lambda code: log.error("the web console has ended", exit_code=code),
    )


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _relative(command: Path) -> Path:
    try:
        return command.relative_to(Path.cwd())
    except ValueError:
        return command


def _process_age_origin() -> float:
    """Return the start of the process on the monotonic clock; the far future if unknown."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return float("inf")
