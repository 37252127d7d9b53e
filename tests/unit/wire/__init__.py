"""Protocol Buffers that several rooms share."""
