"""Without servers: tables of inputs and outputs, golden bytes, properties; a folder a room."""
