"""Values of the offloader: what engines give each other, the scheduler, the page and metrics.

    byte_sizes          sizes in bytes, as text for people
    due                 what of a partition is due, and what is not in the table yet
    files               what tasks write: files, and how many rows of each ledger they hold
    maintenance_result  what maintenance did to one topic's table
    observation         what is known of topics: of all in a round, of one at its last turn
    patterns            names with wildcards, and which settings hold for a topic (pure)
    retry_policy        how often what failed is tried again, and after which pauses
    stopping            StoppedError: the daemon ends before it came to that
    turn                what a turn comes to: its commit, the moves of its holds; its phases

Nothing here does anything: no I/O, no thread, no clock. Imports ``config`` and ``reader``.
"""

__all__: list[str] = []
