"""The offloader's status page, its API, health and metrics over HTTP, in a thread of its own.

    app           the routes; documented in ``docs/monitoring.md``
    commits       the commits of a topic's Delta log, kept: a version never changes
    connections   how many there are, and how long each may take
    gauges        lags and states as Prometheus gauges, from memory
    health        whether the process is alive and ready (pure)
    overview      all topics as JSON, from memory
    query_cache   queries to Pulsar and the storage: few at a time, answers kept for seconds
    requests      requests to offload a topic, by id
    security      Host header, token, response headers
    server        the socket and the thread
    timeline      segments as blocks on a time axis (pure)
    topic_detail  one topic: its status, segments and commits

``static/`` holds the page itself. What fails here is logged and stops no offloading.

Imports ``service``, ``schedule``, ``model``, ``config`` and ``reader``; only ``cli`` imports it.
"""
