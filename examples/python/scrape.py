"""Prints the products of all pages of a shop as lines of JSON: python scrape.py https://shop.example/products"""

import json
import sys
from urllib.parse import urljoin

from pilothouse import Pilothouse

client = Pilothouse()
url: str | None = sys.argv[1]
with client.sessions.create(block={"kinds": ["image", "media", "font"]}) as session, session.playwright() as browser:
    page = browser.contexts[0].pages[0]
    while url:
        page.goto(url)
        for product in page.locator("article").all():
            name = product.get_by_role("heading").text_content()
            price = float(product.locator("data").get_attribute("value") or "nan")
            print(json.dumps({"name": name, "price": price}))
        path = next((link.get_attribute("href") for link in page.locator("a[rel=next]").all()), None)
        url = urljoin(page.url, path) if path else None
