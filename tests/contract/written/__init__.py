"""What is written to a topic, read by the Java client."""
