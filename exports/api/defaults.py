"""What the settings of the REST framework and of its schema must say. The views repeat what access depends on."""

from typing import Any

from exports.callbacks import CallbackState
from exports.contracts import QueueName, State

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["exports.api.identity.Identity"],
    "DEFAULT_PERMISSION_CLASSES": ["exports.api.permissions.HasRight"],
    "DEFAULT_PARSER_CLASSES": ["exports.api.parsing.StrictJson"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    # What is sent follows `Accept` alone.
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "exports.api.problems.handle",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Order exports",
    "DESCRIPTION": "Submit an export of orders, follow it, cancel it, run it again, and fetch its file.",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/orders",
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "exports.api.columns.describe"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "StateEnum": [state.value for state in State],
        "QueueEnum": [queue.value for queue in QueueName],
        "CallbackStateEnum": [state.value for state in CallbackState],
    },
}
