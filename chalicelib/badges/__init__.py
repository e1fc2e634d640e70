"""How any badge looks: options, colours, logos and styles."""
