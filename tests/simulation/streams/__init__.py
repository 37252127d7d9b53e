"""Histories with a stream.

stream_kinds      what steps do to a stream
stream_checks     a stream, with what is checked of it
stream_histories  the steps of a history with a stream
"""
