"""The shop's web application and the work that it gives to the engine."""
