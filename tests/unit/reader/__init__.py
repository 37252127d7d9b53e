"""What the reader's rooms share: settings, values, clients."""
