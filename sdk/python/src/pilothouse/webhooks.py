"""Verification of webhook deliveries."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ._errors import PilothouseError

if TYPE_CHECKING:
    from ._gen.models import ServiceEvent

__all__ = ["WebhookVerificationError", "verify"]

_DEFAULT_TOLERANCE = 300
# A rotation signs with two secrets, so that more signatures are not genuine.
_MAX_SIGNATURES = 8


class WebhookVerificationError(PilothouseError):
    """Raised for a webhook delivery that is not genuine, or too old."""


def verify(
    *,
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str,
    tolerance_seconds: float = _DEFAULT_TOLERANCE,
) -> ServiceEvent:
    """
    Verifies a webhook delivery by its Standard Webhooks headers, and returns its event. `body` is the raw body of the
    request, as received. The same event can be delivered more than once: store its `id`. Raises
    WebhookVerificationError.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    identifier = _read_header(lower, "webhook-id")
    timestamp = _read_header(lower, "webhook-timestamp")
    signatures = _read_header(lower, "webhook-signature").split(" ")[:_MAX_SIGNATURES]
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise WebhookVerificationError("expected a number in webhook-timestamp, got another text")
    age = int(time.time()) - int(timestamp)
    if abs(age) > tolerance_seconds:
        raise WebhookVerificationError(f"expected a webhook-timestamp near this clock, got a difference of {age} s")
    raw = body.encode() if isinstance(body, str) else body
    signed = f"{identifier}.{timestamp}.".encode() + raw
    digest = hmac.new(_decode_secret(secret), signed, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    # `any` stops at the first match, which an attacker without the secret cannot cause.
    if any(hmac.compare_digest(signature.encode(), expected) for signature in signatures):
        return cast("ServiceEvent", json.loads(raw))
    raise WebhookVerificationError("expected a signature with this secret, got none that matches the body")


def _read_header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise WebhookVerificationError(f"expected the header {name}, got none")
    return value


def _decode_secret(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith("whsec_") or not key:
        raise ValueError("expected the secret of an endpoint, whsec_ and base64, got another text")
    return key
