"""Private servers, the supervisor, and a doctor for them."""
