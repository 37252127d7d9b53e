"""What the reader does without sockets: settings, plans, storages, credentials, sources.

    memory_sources  sources that hold everything in memory
    splits          splits for tests

The other modules are tests.
"""
