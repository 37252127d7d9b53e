"""The repository itself: the command line, documents, deployments, the rules of its rooms.

room_doors  the contract of .importlinter that rooms are imported through their doors
tree  the files, packages, docstrings and imports that these tests judge
"""
