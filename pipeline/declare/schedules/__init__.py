"""When jobs are submitted by themselves: the moments, and what is said of a schedule."""
