"""The Python side of catalog, data source and session, without a JVM."""
