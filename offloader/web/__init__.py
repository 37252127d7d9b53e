"""The offloader's status page, its API, health and metrics over HTTP, in a thread of its own.

- ``server`` the socket and the thread · ``app`` the routes · ``guard`` who may ask what
- ``overview`` all topics, out of memory · ``gauges`` the same as metrics · ``health``
- ``asking`` what has to ask Pulsar or the storage: a few at a time, answers kept for a while
- ``details`` one topic · ``blocks`` its segments on a time axis · ``log`` its commits
- ``wishes`` requests to offload a topic · ``static/`` the page itself

Whatever fails here is said, and is nobody else's failure. Only the command imports it.
"""
