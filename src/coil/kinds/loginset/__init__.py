"""Login pods of one cluster."""
