"""Writing rows, against a broker that fails on demand and a local storage.

worlds   one topic of a fake broker, a storage, and the clients of both
sent     entries that are sent, each once
"""
