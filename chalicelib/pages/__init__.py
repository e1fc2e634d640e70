"""Pages that people see: the badge of views with its routes, and the page of a badge."""
