"""Every address of the API. The root URLconf includes this at "" and takes the handlers from `problems`."""

from django.urls import path, re_path

from exports.api import callbacks, download, dry_run, probes, reference, tasks

_EXPORT = "api/orders/export"

urlpatterns = [
    path(_EXPORT, tasks.Exports.as_view(), name="exports"),
    path(f"{_EXPORT}/validate", dry_run.Validate.as_view(), name="validate"),
    path(f"{_EXPORT}/<str:task_id>", tasks.Task.as_view(), name="task"),
    path(f"{_EXPORT}/<str:task_id>/cancel", tasks.Cancel.as_view(), name="cancel"),
    path(f"{_EXPORT}/<str:task_id>/rerun", tasks.Rerun.as_view(), name="rerun"),
    path(f"{_EXPORT}/<str:task_id>/download", download.Download.as_view(), name="download"),
    path(f"{_EXPORT}/<str:task_id>/manifest", download.Manifest.as_view(), name="manifest"),
    path(f"{_EXPORT}/<str:task_id>/callbacks", callbacks.Callbacks.as_view(), name="callbacks"),
    path(f"{_EXPORT}/<str:task_id>/callback/replay", callbacks.Replay.as_view(), name="replay"),
    path(f"{_EXPORT}/callback/replay", callbacks.ReplayFailed.as_view(), name="replay-failed"),
    path("api/schema/", probes.Schema.as_view(), name="schema"),
    path("api/docs/", reference.Reference.as_view(), name="reference"),
    path("healthz", probes.Healthz.as_view(), name="healthz"),
    path("readyz", probes.Readyz.as_view(), name="readyz"),
    path("metrics", probes.Metrics.as_view(), name="metrics"),
    re_path(r"^api/", probes.Unknown.as_view(), name="unknown"),
]

handler400 = "exports.api.problems.bad_request"
handler404 = "exports.api.problems.not_found"
handler500 = "exports.api.problems.server_error"
