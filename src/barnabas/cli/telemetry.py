"""`barnabas telemetry`: the GPU telemetry pipeline."""

import typer

from barnabas.cli import telemetry_dlq, telemetry_query, telemetry_report

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

app.command("report", help=telemetry_report.HELP, epilog=telemetry_report.EPILOG)(
    telemetry_report.report
)
app.command("query", help=telemetry_query.HELP, epilog=telemetry_query.EPILOG)(
    telemetry_query.query
)
app.add_typer(telemetry_dlq.dlq, name="dlq", help=telemetry_dlq.HELP)
