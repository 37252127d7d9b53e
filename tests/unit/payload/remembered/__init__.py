"""What a topic's columns and schema versions have been, and so what they are now."""
