"""vu-mi, live badges for Markdown: the product and its storage on AWS. `vumi` is one machine."""
