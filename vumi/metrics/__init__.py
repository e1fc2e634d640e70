"""The metrics of one machine, as Prometheus scrapes them, and the access log."""
