"""Topics in Spark: a PySpark data source and sink, and helpers over Structured Streaming."""
