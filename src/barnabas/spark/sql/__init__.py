"""Topics in Spark SQL: tables, a database of all topics, and files of streaming statements."""
