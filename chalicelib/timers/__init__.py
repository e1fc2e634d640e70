"""Events at a time: `webhooks` posts one, signed by `signing`, where `addresses` lets it."""
