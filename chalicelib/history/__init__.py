"""The history of a badge: its hours, days, periods and charts."""
