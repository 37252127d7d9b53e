"""Which topic gets a turn, and when."""
