"""What changes while a stream stands still or runs: topics, ledgers, schemas."""
