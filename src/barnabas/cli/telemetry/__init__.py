"""`barnabas telemetry`: GPU telemetry, from collectors to the report."""
