"""Payloads to columns.

cases           schemas and values for all kinds of payload, and how tests decode them
protobuf_cases  Protobuf files, messages and bytes
"""
