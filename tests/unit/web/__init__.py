"""The HTTP side of the offloader.

    world  an offloader in memory, and what it last did

No server is started, except by ``test_server``.
"""
