"""This project's side of the benchmark, as users write it: three phases, with no option but what the row is about."""
