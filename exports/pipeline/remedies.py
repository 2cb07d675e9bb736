"""What to do about each finding of `export_doctor` that is not OK."""

from collections.abc import Mapping

REMEDIES: Mapping[str, str] = {
    "settings": "Set it right in the environment of web and workers: docs/settings.md. Nothing starts until then.",
    "debug": "Set DEBUG=0 and restart the web process.",
    "access": "Set EXPORTS_AUTH=token with EXPORTS_TOKENS, or =gateway with EXPORTS_GATEWAY_SECRET: docs/architecture.md.",
    "redis": "In its configuration: maxmemory-policy noeviction, appendonly yes, cluster-enabled no. "
    "CONFIG SET changes the first two at once. No answer: see EXPORTS_REDIS_URL.",
    "redis databases": "Give EXPORTS_BROKER_URL, EXPORTS_REDIS_URL and EXPORTS_CACHE_URL three databases: …/0, …/1, …/2.",
    "clock": "Set the clocks by NTP (chronyc tracking, timedatectl) on this host and the other.",
    "broker": "See EXPORTS_BROKER_URL and whether its server is up; hints are sent again by themselves.",
    "workers": "Start them: systemctl start "
    "order-exports-worker@{lanes.1,lanes.2,lanes.3,lanes.4,fast.1,finish.1,notify.1}, or python -m config.worker lanes.",
    "callbacks": "Start a worker of the group notify; export_callbacks list TASK shows the receiver's answers.",
    "spool": "Make spool_dir a folder that the service's user may write, with room for the running exports; with "
    "EXPORTS_SPOOL=s3 see bucket, endpoint, keys and the rights in docs/operations.md#object-store.",
    "spool shared": "On one host: give all workers the same EXPORTS_SPOOL_DIR. On several: EXPORTS_SPOOL=s3, or all groups on each host.",
    "store": "Make store_dir a folder that the service's user may write; with S3 see bucket, endpoint, keys and the "
    "rights in docs/operations.md#object-store.",
    "identity": "See that EXPORTS_REDIS_URL, spool and store (S3: bucket and prefix) are those of this installation: "
    "docs/operations.md#redis-was-lost.",
    "table": "See DATABASE_URL, and that its role may SELECT from the table.",
    "key": "Declare another key in the kind, or CREATE UNIQUE INDEX on this one.",
    "time index": "CREATE INDEX on that column; exports are right without it, but every count reads the table.",
    "page query": "ANALYZE the table; see that the key has an index, and its type is the one that the kind declares.",
    "database_timeout": "See what holds the table (a migration, a long transaction) and the database's load; then ask again.",
    "database_connection": "See whether the database is up, DATABASE_URL, and how many connections it allows.",
    "replica_conflict": "Raise the replica's max_standby_streaming_delay, or take another one.",
    "not_checked": "Mend that first, then ask again.",
    "grants": "Use a role of its own: REVOKE ALL on the table, then GRANT SELECT.",
}
"""By the code of an error, else by its name; that of a table without the kind."""
