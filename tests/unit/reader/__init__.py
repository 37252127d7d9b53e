"""What the reader does without sockets: settings, plans, storages, credentials."""
