"""Objects of Pulsar's tiered storage: codecs, and reads of what lies in a directory.

placed           objects in a directory, read by the reader itself
walking          a walk over bytes in memory, in windows of any size
written_objects  objects as the drivers write them, byte by byte from the formats' descriptions
"""
