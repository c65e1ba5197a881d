"""Types of requests, responses and events, as the API has them. They are dictionaries."""

from ._gen.models import *  # noqa: F403
