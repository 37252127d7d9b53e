"""The planner behind the catalog shim: tables, plans, writes.

expressions  filters of Spark's
"""
