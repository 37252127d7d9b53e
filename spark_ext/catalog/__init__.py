"""Catalog.

relations            What a name of the catalog stands for: a topic's snapshot as a view, i
server               The process behind the catalog shim: one line of JSON in, one line of
"""

__all__: list[str] = []
