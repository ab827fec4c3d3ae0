#!/usr/bin/env python3
"""Read the text, title and links of RTF files, a format that kumo does not know.

    kumo crawl --text --filter examples/filters/rtf_text.py https://docs.example/

It needs Python 3 and nothing else. docs/reference/filters.md says what the lines are.
"""
import base64
import json
import re
import sys

SKIPPED = re.compile(rb"\{\\(?:\*|fonttbl|colortbl|stylesheet|info|pict)(?:[^{}]|\{[^{}]*\})*\}")
TITLE = re.compile(rb"\{\\title ([^{}]*)\}")
LINK = re.compile(rb'HYPERLINK "([^"]+)"')
CONTROL = re.compile(rb"\\'([0-9a-f]{2})|\\u(-?\d+) ?.?|\\(par|line|tab)\b ?|\\[a-z]+-?\d* ?|[{}\r\n]", re.I)


def plain(rtf):
    def text(m):
        if m[1]:
            return bytes.fromhex(m[1].decode()).decode("cp1252", "replace").encode()
        if m[2]:
            return chr(int(m[2]) % 65536).encode("utf-8", "replace")
        return {b"par": b"\n", b"line": b"\n", b"tab": b"\t"}.get(m[3], b"")

    return CONTROL.sub(text, rtf).decode("utf-8", "replace").strip()


sys.stdin.readline()  # which says the version of the protocol, and the crawl's name
print('{"points": ["record"], "want": ["body"]}', flush=True)
for line in sys.stdin:
    page = json.loads(line)
    answer = {"id": page["id"]}
    if page["type"] in ("application/rtf", "text/rtf"):
        if "body_file" in page:
            with open(page["body_file"], "rb") as f:
                rtf = f.read()
        else:
            rtf = base64.b64decode(page.get("body", ""))
        title = TITLE.search(rtf)
        answer["title"] = plain(title[1]) if title else ""
        answer["links"] = [link.decode("utf-8", "replace") for link in LINK.findall(rtf)]
        answer["text"] = plain(SKIPPED.sub(b"", rtf))[:800_000]
    print(json.dumps(answer), flush=True)
