"""Website analysis: fetch a site, form the prompts, let a model describe it."""
