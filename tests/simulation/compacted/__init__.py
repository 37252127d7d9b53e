"""Histories of a compacted view, beside a Pulsar that compacts, trims and expires.

compaction        what Pulsar's compaction does to a partition; knows no product
view              a compacted view of the product
view_kinds        what steps do, and what is checked
view_histories    the steps of a history, drawn from a seed
"""
