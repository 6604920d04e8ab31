"""What an application tests its workflows with."""
