"""What tests ask of PostgreSQL: databases that are as new, time that passes, whether anything is left to do."""
