"""Releases as pages and files."""
