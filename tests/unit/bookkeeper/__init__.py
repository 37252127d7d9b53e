"""Codecs and reads of bookies; these fail on demand.

fake_bookie  a bookie in this process that answers by a script
"""
