"""Webhook server and one pure validator per kind."""
