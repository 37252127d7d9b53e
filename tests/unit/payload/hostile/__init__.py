"""Payloads and schemas that are made to cost much: time, memory.

amplified  few bytes that would become many, and a program that decodes them
"""
