"""Extracts main texts with the libraries of Python, for maintext_test.go.

Reads one JSON object a line from standard input: html, url. Writes one object a line for each library: library, version,
cpu (seconds for all pages), and texts, headlines, authors and dates in the order of the pages. The first round warms up.
"""
import json
import sys
import time
from importlib.metadata import version

import readability
import trafilatura
from lxml import html as lxml_html
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree


def by_trafilatura(page):
    d = trafilatura.bare_extraction(page["html"], url=page["url"], with_metadata=True, include_comments=False)
    return (d.text or "", d.title or "", d.author or "", d.date or "") if d else ("", "", "", "")


def by_readability(page):
    doc = readability.Document(page["html"], url=page["url"])
    blocks = lxml_html.fromstring(doc.summary()).itertext()
    return "\n".join(blocks), doc.short_title() or "", "", ""


def by_resiliparse(page):
    tree = HTMLTree.parse(page["html"])
    return extract_plain_text(tree, main_content=True, alt_texts=False), tree.title or "", "", ""


pages = [json.loads(line) for line in sys.stdin]
for library, package, extract in (("trafilatura", "trafilatura", by_trafilatura),
                                  ("readability-lxml", "readability-lxml", by_readability),
                                  ("resiliparse", "resiliparse", by_resiliparse)):
    found, times = [], []
    for _ in range(4):
        begin = time.process_time()
        found = []
        for page in pages:
            try:
                found.append(extract(page))
            except Exception as e:  # a library may reject a page
                print(library, page["url"], repr(e), file=sys.stderr)
                found.append(("", "", "", ""))
        times.append(time.process_time() - begin)
    texts, headlines, authors, dates = (list(all) for all in zip(*found))
    print(json.dumps({"library": library, "version": version(package), "cpu": sorted(times[1:])[1], "texts": texts,
                      "headlines": headlines, "authors": authors, "dates": dates}))
