"""Serves the made-up console. See `python -m web.mock --help`."""

import argparse

from web.mock.server import MockConsole, Settings


def main() -> None:
    """Serve until Ctrl C."""
    parser = argparse.ArgumentParser(prog="python -m web.mock", description=__doc__)
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument(
        "--rows", type=int, default=0, help="how many topics and groups; 0: 40 and 30"
    )
    parser.add_argument(
        "--hostile", action="store_true", help="names and values that try to run scripts"
    )
    parser.add_argument("--empty", action="store_true", help="a cluster without topics and groups")
    parser.add_argument("--login", action="store_true", help="user anna, password secret")
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--base-path", default="")
    parser.add_argument("--interval", type=float, default=10, help="seconds between collections")
    given = parser.parse_args()
    settings = Settings(
        rows=given.rows,
        hostile=given.hostile,
        empty=given.empty,
        login=given.login,
        read_only=given.read_only,
        base_path=given.base_path,
        interval_s=given.interval,
    )
    console = MockConsole(settings, given.port)
    print(f"Open {console.url}/")
    try:
        console.serve()
    except KeyboardInterrupt:
        console.close()


if __name__ == "__main__":
    main()
