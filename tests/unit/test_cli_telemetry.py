"""Tests the options of `barnabas telemetry`, without a broker."""

import subprocess
import sys

import pytest

from barnabas.cli.common.duration_option import parse_duration_ms
from barnabas.cli.common.extras import needs_extra
from barnabas.cli.common.failure import CommandError
from barnabas.cli.telemetry.sending_options import parse_instant_ms, parse_speed
from barnabas.cli.telemetry.telemetry_command import COMMANDS, app


def test_speeds() -> None:
    assert [parse_speed(text) for text in ("1", "10x", "0.5", "max")] == [1, 10, 0.5, 0]
    for text in ("0", "-1", "fast", "inf", "nan"):
        with pytest.raises(CommandError, match=r"write 1, 10, 0\.5 or max"):
            parse_speed(text)


def test_intervals() -> None:
    texts = ("100ms", "0.5s", "30s", "1m30s")
    assert [parse_duration_ms(text, "--interval") for text in texts] == [100, 500, 30_000, 90_000]
    with pytest.raises(CommandError, match="--interval 'often' is not a duration"):
        parse_duration_ms("often", "--interval")


def test_instants() -> None:
    assert parse_instant_ms("2026-11-15T06:54:54Z", "--start") == 1_794_725_694_000
    assert parse_instant_ms("2026-11-15T06:54:54", "--start") == 1_794_725_694_000
    with pytest.raises(CommandError, match="--start 'soon' is not a time"):
        parse_instant_ms("soon", "--start")


def test_a_missing_package_is_one_line_to_type() -> None:
    with pytest.raises(CommandError, match=r"pip install 'barnabas\[telemetry\]'"):  # noqa: SIM117
        with needs_extra("telemetry"):
            import no_such_package  # type: ignore[import-not-found] # noqa: F401


def test_every_command_is_registered() -> None:
    registered = {each.name for each in app.registered_commands}
    registered |= {each.name for each in app.registered_groups}
    assert registered >= set(COMMANDS)


def test_help_loads_no_data_stack() -> None:
    code = (
        "import sys, barnabas.cli.telemetry.telemetry_command; "
        "heavy = {'numpy', 'pandas', 'pyspark', 'pyarrow', 'prometheus_client'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
