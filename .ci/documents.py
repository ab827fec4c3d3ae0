"""Prints the text of a file that LibreOffice wrote (txt, csv, pdf), or of the chapters of an e-book."""
import html.parser
import posixpath
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree as ET
import zipfile


class Text(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.out, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        if tag in ("style", "script", "title", "rt"):
            self.hidden += 1
        elif tag not in ("a", "span", "b", "i", "em", "strong", "code", "sub", "sup", "u", "font", "small", "tt"):
            self.out.append("\n")

    def handle_startendtag(self, tag, attrs):
        self.out.append("\n" if tag == "br" else "")

    def handle_endtag(self, tag):
        if tag in ("style", "script", "title", "rt"):
            self.hidden -= 1
        elif tag in ("p", "div", "td", "th", "li", "h1", "h2", "h3", "h4", "h5", "h6"):
            self.out.append("\n")

    def handle_data(self, data):
        if not self.hidden:
            self.out.append(data)


def strip(markup):
    p = Text()
    p.feed(markup)
    p.close()
    return "".join(p.out)


def chapters(name):
    with zipfile.ZipFile(name) as z:
        container = ET.fromstring(z.read("META-INF/container.xml"))
        opf = container.find(".//{*}rootfile").get("full-path")
        package = ET.fromstring(z.read(opf))
        items = {i.get("id"): i.get("href") for i in package.findall(".//{*}item")}
        done = set()
        for ref in package.findall(".//{*}itemref"):
            href = items[ref.get("idref")].partition("#")[0]
            part = posixpath.join(posixpath.dirname(opf), urllib.parse.unquote(href))
            if part not in done:
                done.add(part)
                yield strip(z.read(part).decode("utf-8", "replace"))


name = sys.argv[1]
if name.endswith(".epub"):
    print("\n".join(chapters(name)))
elif name.endswith(".pdf"):
    subprocess.run(["pdftotext", "-enc", "UTF-8", name, "-"], check=True)
else:
    print(open(name, encoding="utf-8-sig", errors="replace").read())
