"""Streams of the contract's topics: whatever is asked for again, and wherever it lies by then.

following  a topic followed by streams in small batches, as Spark's tasks read them, without it
unions     one streaming query over many topics
"""
