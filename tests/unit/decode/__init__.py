"""Entries to messages.

entries    entries made by hand, byte by byte
reference  a slow decoder, written again from the specification
"""
