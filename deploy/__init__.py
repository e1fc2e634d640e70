"""Deployment to AWS: the package, the stages of `chalice deploy`, and the operator's jobs."""
