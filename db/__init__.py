"""The application's tables, views and migrations: what the four workflows keep."""
