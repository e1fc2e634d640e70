"""Wallets: balances that move exactly once."""
