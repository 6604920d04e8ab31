"""Workflows on private servers: a database, a vhost and worker processes of a test's own."""
