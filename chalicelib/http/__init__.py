"""The HTTP core: requests, responses, errors and the pages that need no storage."""
