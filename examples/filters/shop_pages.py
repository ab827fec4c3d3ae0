#!/usr/bin/env python3
"""Keep nothing of pages without a price, and note the prices of the others in fields.jsonl.

    kumo crawl --filter examples/filters/shop_pages.py https://shop.example/

It needs Python 3 and nothing else. docs/reference/filters.md says what the lines are.
"""
import json
import re
import sys

PRICE = re.compile(r"(\d+[.,]\d\d)\s*(€|EUR|\$|USD)")
SYMBOLS = {"€": "EUR", "$": "USD"}

sys.stdin.readline()  # which says the version of the protocol, and the crawl's name
print('{"points": ["record"], "want": ["html"]}', flush=True)
for line in sys.stdin:
    page = json.loads(line)
    prices = [
        {"amount": float(amount.replace(",", ".")), "currency": SYMBOLS.get(unit, unit)}
        for amount, unit in PRICE.findall(page.get("html", ""))
    ]
    answer = {"id": page["id"]}
    if prices:
        answer["fields"] = {"title": page.get("title", ""), "prices": prices}
    elif page["status"] == 200:
        answer["drop"] = "no price"
    print(json.dumps(answer), flush=True)
