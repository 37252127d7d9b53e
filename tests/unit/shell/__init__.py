"""The shell of ``pulsar-lake sql`` without Spark: statements, completion, results, the screen."""
