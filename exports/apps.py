"""The Django app."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"
    verbose_name = "Order exports"

    def ready(self) -> None:
        from exports import checks  # noqa: F401  registers the system checks
        from exports.kinds.orders import guards  # needs loaded apps

        guards.install()
