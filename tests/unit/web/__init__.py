"""The HTTP side of the offloader.

    world  an offloader in memory, and what it last did

Pulsar is out of reach there, or a small fake of its admin REST.
"""
