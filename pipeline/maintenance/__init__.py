"""What the leaders do beside the jobs: reclaim, reconcile, prune, report."""
