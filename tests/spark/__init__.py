"""The catalog, the data source and Spark's own clients, on a real Pulsar and a real S3 server.

spark_servers     Spark's own servers, as users start them
scripted_planner  a planner whose answers are written down, and queries that ask it
"""
