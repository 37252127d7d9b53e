"""Messages to entries, and back: by our own decoder, and by Google's of PulsarApi.proto.

encoding   rows to entries as they are stored
proto      MessageMetadata and SingleMessageMetadata, by Google's library
"""
