#!/usr/bin/env python3
"""Follow only links that may lead to recipes, and those that say so first.

    kumo crawl --filter examples/filters/only_recipes.py https://example.com/

It needs Python 3 and nothing else. docs/reference/filters.md says what the lines are.
"""
import json
import re
import sys

RECIPE = re.compile(r"recipe|rezept|recette|ricetta", re.IGNORECASE)
WAY = re.compile(r"/(category|tag|page|search)/|[?&]page=\d+", re.IGNORECASE)

sys.stdin.readline()  # which says the version of the protocol, and the crawl's name
print('{"points": ["link"]}', flush=True)
for line in sys.stdin:
    link = json.loads(line)
    answer = {"id": link["id"]}
    if RECIPE.search(link["url"]) or RECIPE.search(link.get("text", "")):
        answer["rank"] = 4  # before the others of its host
    elif not WAY.search(link["url"]):
        answer["drop"] = "no recipe"
    print(json.dumps(answer), flush=True)
