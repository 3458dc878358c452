"""Dashboards as data, and what tests them."""
