"""Spark jobs, lakes and GPU exporters for tests of the pipeline."""
