"""Turn.

topic_offloader      One topic's turn: take the hold, plan, convert, commit, and let go of
"""

__all__: list[str] = []
