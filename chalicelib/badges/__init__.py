"""The look of every badge: options, colours, logos and styles."""
