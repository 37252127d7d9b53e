"""JSON payloads: values, numbers, forms, and that the compiled loop agrees with Python.

agreement  schemas of such tests, and the check that both ways of decoding agree
"""
