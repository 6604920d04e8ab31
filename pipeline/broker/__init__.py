"""RabbitMQ as this project uses it: queues, deliveries, acknowledgements, confirmed publishing."""
