"""Random histories of what rows mean: how they are written, counted and compacted.

written         rows by the position of their columns, under schemas that change
test_written    some of them
counted         entries whose headers are wrong, counted and read in each tier
test_counted    some of them
"""
