"""Signatures of a delivery: those of Standard Webhooks, and `X-Signature` over the body alone.

Source: https://www.standardwebhooks.com/ (version 1.0.0): `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`,
one for each secret, separated by spaces; a secret is `whsec_` and the base64 of 24 to 64 bytes.
"""

import base64
import hmac
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"  # noqa: S105  the public prefix, no secret
_KEY_BYTES = range(24, 65)


def key_of(secret: object) -> bytes:
    """The key that a secret spells. Raises: ValueError with what is wrong, without the text."""
    if not isinstance(secret, str) or not secret.startswith(SECRET_PREFIX):
        raise ValueError(f"must start with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        raise ValueError(f"must be {SECRET_PREFIX} and base64") from None
    if len(key) not in _KEY_BYTES:
        raise ValueError(f"must hold {_KEY_BYTES.start} to {_KEY_BYTES.stop - 1} bytes")
    return key


def headers(body: bytes, *, message_id: str, timestamp_s: int, keys: Sequence[bytes]) -> dict[str, str]:
    """The headers that sign a body. keys: more than one while a secret is rotated; `X-Signature` is of the first."""
    signed = b".".join((message_id.encode(), str(timestamp_s).encode(), body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(_mac(key, signed)).decode()}" for key in keys),
        "X-Signature": f"sha256={_mac(keys[0], body).hex()}",
        "X-Signature-Timestamp": str(timestamp_s),
    }


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")
