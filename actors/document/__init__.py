"""Documents: fetch a PDF from the registry, then read its pages."""
