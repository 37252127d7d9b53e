"""Objects of Pulsar's tiered storage: codecs, and reads of what lies in a directory.

walking          a walk over bytes in memory, in windows of any size
written_objects  objects as the drivers write them, byte by byte from the formats' descriptions
"""
