"""What stands between a phase and the outside world: addresses, sizes, rates, breakers."""
