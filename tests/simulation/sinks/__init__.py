"""Histories with writes to a topic.

sink_world      drivers, their writes, and what each was given
sink_checks     what is in the topic has to be what was committed; when an error has a reason
sink_faults     what steps do to brokers and storage under writes
sink_kinds      what steps do to writes
sink_histories  the steps of a history with writes
"""
