"""The guarded HTTP client: no private address, no endless answer."""
