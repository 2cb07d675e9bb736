"""Files: the spool of unfinished work, recipes, and the stores of finished artifacts."""

import functools
from typing import TYPE_CHECKING

from django.core.signals import setting_changed

from exports.conf import conf
from exports.storage.base import ArtifactStore, Spool
from exports.storage.filesystem import FolderStore
from exports.storage.spool import FolderSpool

if TYPE_CHECKING:
    from exports.storage.s3_bucket import Bucket

_MIB = 1 << 20
_CONNECTIONS = 16
"""As many as the web process has threads; a worker that uploads out of the spool needs nine."""


@functools.cache
def spool() -> Spool:
    """The spool of the settings in force."""
    if conf().spool == "s3":
        from exports.storage.s3_spool import S3Spool  # boto3, as below

        return S3Spool(_bucket())
    return FolderSpool(conf().spool_dir, reserve_bytes=conf().spool_reserve_mb * _MIB)


@functools.cache
def artifacts() -> ArtifactStore:
    """The store of the settings in force."""
    if conf().storage == "s3":
        from exports.storage.s3 import S3Store  # boto3 takes 25 MB

        return S3Store(_bucket(), part_size=conf().s3_part_mb * _MIB)
    return FolderStore(conf().store_dir)


@functools.cache
def _bucket() -> "Bucket":
    from exports.storage.s3_bucket import Bucket  # as above

    return Bucket(conf(), connections=_CONNECTIONS)


def _forget(*, setting: str, **_: object) -> None:
    if setting == "EXPORTS":
        for cached in (spool, artifacts, _bucket):
            cached.cache_clear()


setting_changed.connect(_forget)
