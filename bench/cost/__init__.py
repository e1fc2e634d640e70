"""What views, events and wallets cost on AWS."""
