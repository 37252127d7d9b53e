"""Against a cluster with TLS, authentication and authorization: who may read, and what shows."""
