"""Schedule.

discovery            Which topics the offloader serves: names and patterns, looked up in Pu
observation          What the scheduler knows of a topic between two whole looks at it. Pur
policy               Which sealed ledgers of a partition are due, and why. Pure: lists, a c
queue                Which topic is next: the waiting line. Pure: times come in, nothing is
request              What somebody asked the scheduler for: one topic offloaded now, with p
scheduler            Gives turns to all topics: who is next says the line, each turn has a
"""

__all__: list[str] = []
