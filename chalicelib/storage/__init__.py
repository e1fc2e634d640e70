"""The ports of storage, and the values, writes, conditions and errors that pass through them.

Every engine answers alike: the same values, the same errors (`tests/conformance`).
"""
