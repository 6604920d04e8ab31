"""Workflows in memory: the rules of the engine, without PostgreSQL, RabbitMQ and worker processes."""
