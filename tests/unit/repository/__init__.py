"""The repository itself: the command line, documents, deployments, the rules of its rooms.

tree  the files, packages, docstrings and imports that these tests judge
"""
