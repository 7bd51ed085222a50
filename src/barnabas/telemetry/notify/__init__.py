"""Forwards the alerts of topic gpu-alerts to a webhook and to Alertmanager.

    gpu-alerts -> notice (parse) -> outbox (what is due, no I/O) -> endpoints (bodies) -> http_post
                                       ^
                  gpu-silences -> silences

`forwarder` runs one endpoint: a consumer of its own group, so that an endpoint that is away delays
itself and no other.
"""
