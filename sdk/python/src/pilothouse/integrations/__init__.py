"""Sessions in other libraries, which must be installed."""
