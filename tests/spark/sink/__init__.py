"""Rows that Spark writes to topics: every way in, each row once, whatever dies.

conftest       topics that a test writes to
retried_write  a write of which the tasks' first attempts fail, or hang
"""
