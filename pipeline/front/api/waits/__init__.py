"""Events of jobs over HTTP: told with a token, or by a link."""
