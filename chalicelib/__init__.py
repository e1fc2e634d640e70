"""vu-mi: live badges for Markdown. The product, and its storage on AWS; `local/` is one machine."""
