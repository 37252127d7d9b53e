"""Rows that Spark writes to topics: every way in, each row once, whatever dies.

conftest  topics that a test writes to
"""
