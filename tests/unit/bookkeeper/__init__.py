"""Codecs and reads of bookies; the retry rules without sockets.

memory_bookies  bookies without sockets, and a clock that only waits advance
fake_bookie     a bookie in this process that answers by a script, and a network that stalls
stored_ledgers  ledgers as such bookies store them, and what a read has to give
"""
