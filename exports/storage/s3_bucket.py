"""The calls to S3 that this product makes, with its own values and errors. The only module that imports boto3.

Settings and client come from django-storages; multipart calls, which it does not have, go to its boto3 client. Nothing
here retries: the tries of a step are counted in Redis.
"""

import base64
import hashlib
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage

from exports.conf import Conf
from exports.contracts import StoredPart
from exports.errors import StoreUnavailable

# At DEBUG it writes signatures and signed links.
logging.getLogger("botocore").setLevel(logging.INFO)

_CHUNK = 1 << 20
_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 60
_LINK_S = 60
_UPLOAD_GONE = ("NoSuchUpload", "InvalidPart", "InvalidPartOrder", "EntityTooSmall")
_DIGEST = "sha256"
"""Name of the metadata that holds the artifact's digest."""


class UploadGone(StoreUnavailable):
    """The store does not know the upload, or not the parts that it took: only a new one can succeed."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A finished object. etag: without quotes. sha256: as it was told at the upload."""

    size: int
    etag: str
    sha256: str


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = _code(error)
        raise (UploadGone if code in _UPLOAD_GONE else StoreUnavailable)(code) from error
    except BotoCoreError as error:
        raise StoreUnavailable(type(error).__name__) from error


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _is_missing(error: ClientError) -> bool:
    """An answer to HEAD has no body, so only its status tells; a missing bucket has the same one."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return bool(status == HTTPStatus.NOT_FOUND) and _code(error) != "NoSuchBucket"


class Bucket:
    """Names are relative to the prefix. Safe to share between threads. Raises, all methods: StoreUnavailable."""

    def __init__(self, settings: Conf, *, connections: int) -> None:
        storage = S3Storage(
            bucket_name=settings.s3_bucket,
            location=settings.s3_prefix,
            endpoint_url=settings.s3_endpoint_url or None,
            region_name=settings.s3_region,
            access_key=settings.s3_access_key or None,
            secret_key=settings.s3_secret_key or None,
            object_parameters=_encryption(settings),
            client_config=_client_config(settings, connections=connections),
        )
        # django-storages keeps one client for each thread; boto3's are made to be shared.
        self._client: Any = storage.connection.meta.client
        self._bucket = {"Bucket": storage.bucket_name}
        self._prefix = f"{storage.location}/" if storage.location else ""
        self._parameters: Mapping[str, str] = storage.object_parameters

    def _named(self, name: str) -> dict[str, str]:
        return {**self._bucket, "Key": f"{self._prefix}{name}"}

    # --- whole objects -----------------------------------------------------------------------

    def put(self, name: str, data: bytes, *, sha256: str = "") -> None:
        with _translated():
            self._client.put_object(
                **self._named(name),
                **_body(data, md5(data)),
                **self._parameters,
                Metadata={_DIGEST: sha256} if sha256 else {},
            )

    def get(self, name: str) -> bytes:
        """A whole object. Raises: FileNotFoundError when there is none."""
        return b"".join(self._chunks(name))

    def read(self, name: str, offset: int, length: int) -> Iterator[bytes]:
        """Chunks of a range. Raises: FileNotFoundError when there is no such object."""
        if length:
            yield from self._chunks(name, Range=f"bytes={offset}-{offset + length - 1}")

    def _chunks(self, name: str, **wanted: str) -> Iterator[bytes]:
        with _translated():
            try:
                answer = self._client.get_object(**self._named(name), **wanted)
            except ClientError as error:
                if _is_missing(error):
                    raise FileNotFoundError(name) from error
                raise
            with closing(answer["Body"]) as body:
                yield from body.iter_chunks(_CHUNK)

    def find(self, name: str) -> Stored | None:
        with _translated():
            try:
                answer = self._client.head_object(**self._named(name))
            except ClientError as error:
                if _is_missing(error):
                    return None
                raise
        return Stored(answer["ContentLength"], answer["ETag"].strip('"'), answer["Metadata"].get(_DIGEST, ""))

    def link(self, name: str, *, content_type: str, disposition: str) -> str:
        """A signed URL for one GET within a minute."""
        wanted = {
            **self._named(name),
            "ResponseContentType": content_type,
            "ResponseContentDisposition": disposition,
            "ResponseCacheControl": "private, no-store",
        }
        with _translated():
            return str(self._client.generate_presigned_url("get_object", Params=wanted, ExpiresIn=_LINK_S))

    def delete(self, name: str) -> None:
        with _translated():
            self._client.delete_object(**self._named(name))

    def objects(self, under: str = "") -> Iterator[tuple[str, float]]:
        """Name and Unix time of each object whose name begins so."""
        for name, found in self._listed("list_objects_v2", "Contents", under=under):
            yield name, found["LastModified"].timestamp()

    # --- uploads in parts --------------------------------------------------------------------

    def begin(self, name: str, *, sha256: str) -> str:
        """The id of a new upload."""
        with _translated():
            answer = self._client.create_multipart_upload(
                **self._named(name), **self._parameters, Metadata={_DIGEST: sha256}
            )
        return str(answer["UploadId"])

    def send(self, name: str, upload_id: str, number: int, data: bytes) -> StoredPart:
        """Raises: UploadGone."""
        digest = md5(data)
        with _translated():
            answer = self._client.upload_part(
                **self._named(name), UploadId=upload_id, PartNumber=number, **_body(data, digest)
            )
        return StoredPart(answer["ETag"].strip('"'), digest)

    def complete(self, name: str, upload_id: str, etags: Sequence[str]) -> None:
        """etags: of all parts from 1 on. An answer of 200 may hold an error; the client raises that. Raises: UploadGone."""
        parts = [{"PartNumber": number, "ETag": f'"{etag}"'} for number, etag in enumerate(etags, 1)]
        with _translated():
            self._client.complete_multipart_upload(
                **self._named(name), UploadId=upload_id, MultipartUpload={"Parts": parts}
            )

    def abort(self, name: str, upload_id: str) -> None:
        """Nothing to abort is fine."""
        with suppress(UploadGone), _translated():
            self._client.abort_multipart_upload(**self._named(name), UploadId=upload_id)

    def uploads(self, under: str = "") -> Iterator[tuple[str, str, float]]:
        """Name, id and Unix time of each open upload whose name begins so."""
        for name, found in self._listed("list_multipart_uploads", "Uploads", under=under):
            yield name, found["UploadId"], found["Initiated"].timestamp()

    def _listed(self, call: str, field: str, *, under: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        with _translated():
            pages = self._client.get_paginator(call).paginate(**self._bucket, Prefix=f"{self._prefix}{under}")
            for page in pages:
                for found in page.get(field, []):
                    yield found["Key"].removeprefix(self._prefix), found


def md5(data: bytes) -> str:
    """What S3 names parts by; hex."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _body(data: bytes, digest: str) -> dict[str, object]:
    """Content-MD5: the store refuses bytes that changed on the way; every S3 knows it.

    A stream, because a time limit counts for each of its pieces, but for the whole of bytes.
    """
    return {"Body": io.BytesIO(data), "ContentMD5": base64.b64encode(bytes.fromhex(digest)).decode()}


def _encryption(settings: Conf) -> dict[str, str]:
    if settings.s3_encryption == "bucket":
        return {}
    key = {"SSEKMSKeyId": settings.s3_kms_key} if settings.s3_kms_key else {}
    return {"ServerSideEncryption": settings.s3_encryption, **key}


def _client_config(settings: Conf, *, connections: int) -> Config:
    return Config(
        signature_version="s3v4",
        s3={"addressing_style": settings.s3_addressing},
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"total_max_attempts": 1},
        max_pool_connections=connections,
        # Not every S3 knows the checksums that boto3 would add; Content-MD5 does their work.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
