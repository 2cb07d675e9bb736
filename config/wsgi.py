"""The web process. It refuses to start with a wrong configuration, which no later request could tell."""

from django.core.wsgi import get_wsgi_application

from config import env, startup

env.choose_settings("config.settings.web")
startup.refuse_missing_secret_key()
application = get_wsgi_application()
startup.refuse_wrong_configuration()
startup.refuse_unfit_redis()
startup.start_tracing()
