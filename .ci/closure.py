#!/usr/bin/env python3
"""Compare crawls of a static site with the site's link closure, computed without kumo.

usage: closure.py SITE FOLDER...

From the URL SITE this follows every link that a browser would take somewhere (a, area, link but for parts of the page,
frames, refreshes, redirects) as long as it stays on SITE's host and port, with html5lib as parser and urllib's rules
for relative URLs. Each FOLDER is a crawl of SITE: its pages.jsonl must have exactly these URLs, each once, with the
same status and payload. Only a URL that skipped.jsonl ascribes to robots.txt may be missing. Every difference is
printed, and any makes the exit status 1.

A charset that is not declared is UTF-8. Link fields and other charsets in queries are left out: file servers and
documentation have none.
"""

import base64
import collections
import hashlib
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import sys
import time
from urllib.parse import quote, urljoin, urlsplit

import html5lib

XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
HINTS = {"dns-prefetch", "preconnect"}
PARTS = {"icon", "mask-icon", "fluid-icon", "manifest", "preload", "modulepreload", "prefetch"}
REFRESH = re.compile(r"""\s*(?:\d+[\d.]*|\.[\d.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""", re.I | re.S)
SPACES = "".join(map(chr, range(33)))

Page = collections.namedtuple("Page", "status digest links")


def segments(path):
    """Remove dot segments from an absolute path."""
    out = []
    parts = path.split("/")[1:]
    for i, part in enumerate(parts):
        if part == ".." and out:
            out.pop()
        if part not in (".", ".."):
            out.append(part)
        elif i == len(parts) - 1:
            out.append("")
    return "/" + "/".join(out)


def escape(text, keep):
    """Normalize percent-encoding: unreserved characters bare, digits in upper case, a stray % as %25."""
    def fix(match):
        if not match[1]:
            return "%25"
        char = chr(int(match[1], 16))
        return char if re.match(r"[A-Za-z0-9._~-]", char) else match[0].upper()
    return quote(re.sub("%([0-9A-Fa-f]{2})?", fix, text), safe=keep + "%/:@!$&()*+,;=[]")


def resolve(base, ref):
    """Return the canonical URL of ref on a page with this base, or None if it is not an HTTP URL."""
    ref = re.sub("[\t\r\n]", "", ref.strip(SPACES))
    scheme = re.match("([A-Za-z][A-Za-z0-9+.-]*):", ref)
    if scheme and scheme[1].lower() not in ("http", "https"):
        return None
    path, rest = re.match("([^?#]*)(.*)", ref, re.S).groups()
    try:
        url = urlsplit(urljoin(base, path.replace("\\", "/") + rest))
        host, port = url.hostname, url.port
    except ValueError:
        return None
    if not host:
        return None
    if port and port != {"http": 80, "https": 443}[url.scheme]:
        host += f":{port}"
    query = "?" + escape(url.query, "?") if url.query else ""
    return f"{url.scheme}://{host}{segments(escape(url.path or '/', chr(39)))}{query}"


def leads_away(rel):
    """Report whether a link element with this rel names another document, rather than a part of its own."""
    types = set(rel.lower().split()) - HINTS
    if not types or "stylesheet" in types:
        return False
    return "canonical" in types or not any(t in PARTS or t.startswith("apple-touch-") for t in types)


def references(tree):
    """Yield each reference in the document to another document."""
    for element in tree.iter():
        tag = element.tag
        if tag in (XHTML + "a", XHTML + "area"):
            yield element.get("href")
        elif tag == SVG + "a":
            yield element.get("href", element.get(XLINK_HREF))
        elif tag == XHTML + "link" and leads_away(element.get("rel", "")):
            yield element.get("href") or None
        elif tag in (XHTML + "frame", XHTML + "iframe"):
            yield element.get("src") or None
        elif tag == XHTML + "meta" and element.get("http-equiv", "").lower() == "refresh":
            match = REFRESH.match(element.get("content", ""))
            yield match and (match[1] or match[2] or match[3]) or None


def links_of(url, answer, body):
    if answer.status in (301, 302, 303, 307, 308) and answer.getheader("Location"):
        return {resolve(url, answer.getheader("Location"))}
    if answer.headers.get_content_type() not in ("text/html", "application/xhtml+xml"):
        return set()
    tree = html5lib.parse(body, transport_encoding=answer.headers.get_content_charset(),
                          default_encoding="utf-8")
    bases = (b.get("href") for b in tree.iter(XHTML + "base"))
    base = resolve(url, next((b for b in bases if b is not None), "")) or url
    return {resolve(base, ref) for ref in references(tree) if ref is not None}


def visit(url):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        connection.request("GET", url[len(f"http://{parts.netloc}"):])
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    return url, Page(answer.status, "sha1:" + digest, links_of(url, answer, body))


def closure(site):
    """Return all pages of the site by URL, found layer by layer."""
    site = resolve(site, "")
    prefix = site[:site.index("/", len("http://")) + 1]
    pages, layer = {}, {site}
    with multiprocessing.Pool(os.cpu_count()) as pool:
        while layer:
            found = dict(pool.imap_unordered(visit, sorted(layer)))
            pages.update(found)
            links = set().union(*(page.links for page in found.values())) - {None}
            layer = {link for link in links if link.startswith(prefix)} - pages.keys()
    return pages


def lines(file):
    with open(file, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def compare(pages, folder):
    """Print each difference between the closure and the crawl; return their number."""
    crawled = lines(folder / "pages.jsonl")
    by_url = {line["url"]: line for line in crawled}
    skipped = {line["url"]: line for line in lines(folder / "skipped.jsonl")}
    differences, allowed = [], 0
    for url, times in collections.Counter(line["url"] for line in crawled).items():
        if times > 1:
            differences.append(f"{times} times: {url}")
    for url in sorted(pages.keys() - by_url.keys()):
        skip = skipped.get(url, {"rule": "nothing", "why": "not in skipped.jsonl"})
        allowed += skip["rule"] == "robots"
        if skip["rule"] != "robots":
            differences.append(f"missing: {url}: {skip['rule']}: {skip['why']}")
    for url in sorted(by_url.keys() - pages.keys()):
        differences.append(f"beyond: {url} from {by_url[url]['from']}")
    for url in sorted(by_url.keys() & pages.keys()):
        got, want = by_url[url], pages[url]
        if (got["status"], got["digest"]) != (want.status, want.digest):
            differences.append(f"not the same: {url}: {got['status']} {got['digest']}, not {want.status} {want.digest}")
    for difference in differences:
        print("  " + difference)
    print(f"{folder}: {len(crawled)} pages, closure {len(pages)}, by robots.txt {allowed}, differences {len(differences)}")
    return len(differences)


def main(site, *folders):
    start = time.monotonic()
    pages = closure(site)
    statuses = collections.Counter(page.status for page in pages.values())
    print(f"closure of {site}: {len(pages)} URLs in {time.monotonic() - start:.1f} s, "
          + ", ".join(f"{n} of status {status}" for status, n in sorted(statuses.items())))
    return sum(compare(pages, pathlib.Path(folder)) for folder in folders)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]) > 0)
