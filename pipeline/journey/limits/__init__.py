"""What an attempt passes before its work begins, if its phase shares something outside."""
