"""Iceberg tables that follow Delta tables, in local directories.

worlds   a Delta table, the follower of its Iceberg table, and whether both have the same rows
"""
