"""Codecs and reads of bookies; these fail on demand.

fake_bookie     a bookie in this process that answers by a script, and a network that stalls
stored_ledgers  ledgers as such bookies have them, and what is to come of them
"""
