"""What brings vu-mi to AWS: the package, the stage of `chalice deploy`, the redrive."""
