"""Which sealed ledgers are due."""
