"""Spark SQL over topics: tables, a database of all topics, and files of streaming statements."""
