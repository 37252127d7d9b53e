"""Columns to payloads, and back.

writing  how tests encode rows, and read them again
"""
