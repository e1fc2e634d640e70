"""The cost of views, events and wallets on AWS."""
