"""The API as a page: everything that the schema has, and nothing from other hosts."""

import re

import pytest
import yaml
from django.test import Client

from exports.api.reference import page
from tests.integration.api_client import alice, tokens  # noqa: F401
from tests.integration.test_api_probes import published


@pytest.mark.usefixtures("tokens")
def test_the_page_shows_every_operation_answer_and_field(alice: Client) -> None:
    response = alice.get("/api/docs/")
    text = response.content.decode()
    assert (response.status_code, response["Content-Type"]) == (200, "text/html; charset=utf-8")
    document = yaml.safe_load(published())
    for path, methods in document["paths"].items():
        assert f"<code>{path}</code>" in text
        for operation in methods.values():
            section = text.split(f'id="{operation["operationId"]}"')[1].split("</section>")[0]
            assert set(operation["responses"]) <= set(re.findall(r"<td>([0-9]{3})</td>", section))
    for name, schema in document["components"]["schemas"].items():
        section = text.split(f'id="shape-{name}"')[1].split("</section>")[0]
        for field in schema.get("properties", {}):
            assert f"<code>{field}</code>" in section


@pytest.mark.usefixtures("tokens")
def test_every_link_of_the_page_leads_somewhere_on_this_host(alice: Client) -> None:
    text = alice.get("/api/docs/").content.decode()
    anchors, links = set(re.findall(r'id="([^"]+)"', text)), set(re.findall(r'(?:href|src)="([^"]+)"', text))
    assert {link for link in links if not (link.startswith("#") and link[1:] in anchors)} == {"../schema/"}
    assert "<script" not in text and "http:" not in text and "https:" not in text


def test_texts_of_the_document_are_escaped() -> None:
    document = {
        "info": {"title": "<b>", "description": "", "version": "1"},
        "paths": {},
        "components": {"schemas": {"A": {"properties": {"<x>": {"type": "string", "description": "<y>"}}}}},
    }
    text = page(document)
    assert "<b>" not in text and "<x>" not in text and "&lt;y&gt;" in text
