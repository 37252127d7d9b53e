"""Entries to messages.

entries    entries made by hand, byte by byte
hostile    entries of a few kB that become many rows, and what reading them costs
reference  a slow decoder, written again from the specification
"""
