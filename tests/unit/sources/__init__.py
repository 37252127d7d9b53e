"""Sources of entries and rows, and which follows which.

memory_sources  sources that hold everything in memory
splits          splits for tests
"""
