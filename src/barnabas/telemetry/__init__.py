"""GPU telemetry: collectors, the Spark pipeline over them, and what operators see of it.

    collectors -> topic gpu-telemetry -> Structured Streaming -> tables, alerts, reports

`metrics` says what is measured, `messages` how it travels, `tables` what is kept; everything else
is one step of the way.
"""
