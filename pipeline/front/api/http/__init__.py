"""What every route stands on: who may call, limits, pages, problems."""
