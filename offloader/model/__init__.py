"""Model.

patterns             Patterns of topic names, and which settings hold for a topic. Pure.
"""

__all__: list[str] = []
