"""Snapshots, tiers, pruning and plans over scripted ledgers.

values  segments, snapshots and predicates to plan with
"""
