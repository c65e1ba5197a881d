"""Runs a Playwright suite, each test in a remote browser of its own: SHOP_URL=... pytest test_shop.py"""

import os
from collections.abc import Iterator

import pytest
from pilothouse import Pilothouse
from playwright.sync_api import Page, expect

SHOP_URL = os.environ["SHOP_URL"]


@pytest.fixture
def page() -> Iterator[Page]:
    with Pilothouse() as client, client.sessions.create() as session, session.playwright() as browser:
        yield browser.contexts[0].pages[0]


def test_lists_products(page: Page) -> None:
    page.goto(f"{SHOP_URL}/products")
    expect(page.get_by_role("heading")).to_have_text(["Shirt 1", "Shirt 2"])


def test_shows_the_next_page(page: Page) -> None:
    page.goto(f"{SHOP_URL}/products")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("heading").first).to_have_text("Shirt 3")
