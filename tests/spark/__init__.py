"""The catalog, the data source and Spark's own clients, on a real Pulsar and a real S3 server."""
