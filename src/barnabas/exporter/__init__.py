"""`barnabas exporter`: metrics of a whole cluster and its groups, for Prometheus."""
