"""The operators' page, built on Django's admin without a table."""
