"""Shows the figures that tests record at the end: a passed run says how much it checked."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("passed", []):
        if report.user_properties:
            figures = ", ".join(f"{name}={value}" for name, value in report.user_properties)
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {figures}")
