"""Errors of calls, with a class for each slug."""

from ._errors import PilothouseConnectionError as PilothouseConnectionError
from ._errors import PilothouseError as PilothouseError
from ._errors import PilothouseResponseError as PilothouseResponseError
from ._errors import PilothouseTimeoutError as PilothouseTimeoutError
from ._gen.errors import *  # noqa: F403
