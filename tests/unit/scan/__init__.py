"""``reader.scan`` without servers."""
