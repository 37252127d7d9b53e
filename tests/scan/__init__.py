"""Topics without Spark: scans to Arrow, their first and last messages, and the examples."""
