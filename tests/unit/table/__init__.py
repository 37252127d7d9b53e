"""`reader.table`: what the log says, on a local table."""
