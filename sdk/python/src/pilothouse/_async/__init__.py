"""Asynchronous half of the package, from which the synchronous half is generated."""
