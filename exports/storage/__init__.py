"""Files: the spool of unfinished work, recipes, and the stores of finished artifacts."""

import functools

from django.core.signals import setting_changed

from exports.conf import conf
from exports.storage.base import ArtifactStore
from exports.storage.filesystem import FolderStore
from exports.storage.spool import Spool

_MIB = 1 << 20


@functools.cache
def spool() -> Spool:
    """The spool of the settings in force."""
    return Spool(conf().spool_dir, reserve_bytes=conf().spool_reserve_mb * _MIB)


@functools.cache
def artifacts() -> ArtifactStore:
    """The store of the settings in force."""
    if conf().storage == "s3":
        from exports.storage.s3 import S3Store  # boto3 takes 25 MB

        return S3Store(conf())
    return FolderStore(conf().store_dir)


def _forget(*, setting: str, **_: object) -> None:
    if setting == "EXPORTS":
        spool.cache_clear()
        artifacts.cache_clear()


setting_changed.connect(_forget)
