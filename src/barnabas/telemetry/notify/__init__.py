"""Forwards the alerts of topic gpu-alerts to a webhook and to Alertmanager.

    gpu-alerts -> notice (parse) -> outbox (what is due, no I/O) -> endpoints (bodies) -> http_post
                                       ^
                  gpu-silences -> silences

`forwarder` runs one endpoint with a separate consumer group, so that an unreachable endpoint does
not delay the others.
"""
