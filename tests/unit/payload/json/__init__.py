"""JSON payloads, and the doubles in them."""
