"""The language of the request in work, as Django's locale middleware has chosen it."""

from django.utils.translation import get_language

from exports.messages import Language, choose_language


def language_in_use() -> Language:
    return choose_language(get_language() or "")
