"""What users write workflows with: decisions and plain values, no I/O."""
