"""One topic's turn, from taking its hold to releasing what is settled.

    topic_offloader  the order of a turn, which is what makes it safe
    holding          the holds of this process's topics: taken, restored, released
    chunk_timeouts   which incomplete chunked messages are given up, and when
    conversion_step  what is due, as files that one commit can add
    left_incomplete  chunked messages that conversions left incomplete, remembered between turns
    observing        what the scheduler keeps of a topic until its next turn (pure)
    held_topic       what a turn works on, and what was asked of it
    known_versions   for how long the versions of a table have been known
    phase_timer      how long its phases take

How a ledger is converted, a commit is made and a cursor is moved is in ``convert``, ``commit`` and
``subscription``. Imports ``commit``, ``convert``, ``subscription``, ``backlog``, ``output``,
``parquet``, ``model``, ``config`` and ``reader``; never the scheduler, the service or the command
line.
"""
