"""Figures that a test records are shown at the end: a run that passed says how much it checked."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("passed", []):
        if report.user_properties:
            figures = ", ".join(f"{name}={value}" for name, value in report.user_properties)
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {figures}")
