"""GPU telemetry: a collector, the Spark pipeline, and reports and alerts for operators.

    collectors -> topic gpu-telemetry -> Structured Streaming -> tables, alerts, reports

`samples.metrics` lists what is measured, `samples.sample_messages` has the message formats and
`lake.lake_tables` the stored columns; every other module is one step of this path.
"""
