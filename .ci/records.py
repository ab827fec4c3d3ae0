#!/usr/bin/env python3
"""Check that the files of crawls agree with each other, read by warcio and FastWARC.

usage: records.py FOLDER...

Every line of pages.jsonl is JSON and its warc and offset lead to a response or revisit record of its URL, with its
status and digest; a revisit names an earlier record that is there. Every index is sorted by bytes, and its lines, and
no others, lead to the responses and revisits. FastWARC finds all block and payload digests right. No file is left open.
"""

import json
import pathlib
import sys

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator


class Checker:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.faults = []
        self.records = {}  # (file, offset): (type, URL, status, payload digest)

    def expect(self, ok, fault):
        if not ok:
            self.faults.append(fault)

    def read_warcs(self):
        warcs = sorted(self.folder.glob("warc/*.warc*"))
        self.expect(warcs, "no WARC file")
        for file in warcs:
            self.expect(not file.name.endswith(".open"), f"{file.name}: left open")
            self.read_warc(file)
            self.verify(file)

    def read_warc(self, file):
        with open(file, "rb") as stream:
            records = ArchiveIterator(stream, check_digests="raise")
            for record in records:
                head, offset = record.rec_headers, records.get_record_offset()
                record.content_stream().read()
                if record.rec_type in ("response", "revisit"):
                    status = record.http_headers and record.http_headers.get_statuscode()
                    self.records[file.name, offset] = (record.rec_type, head.get_header("WARC-Target-URI"), status,
                                                       head.get_header("WARC-Payload-Digest"))
                    if record.rec_type == "revisit":
                        self.check_revisit(head)

    def check_revisit(self, head):
        """Check that the record that a revisit refers to was read before it."""
        original = head.get_header("WARC-Refers-To-Target-URI"), head.get_header("WARC-Payload-Digest")
        self.expect(any((url, digest) == original and kind == "response" for kind, url, _, digest in self.records.values()),
                    f"revisit of {head.get_header('WARC-Target-URI')}: no record of {original}")

    def verify(self, file):
        with open(file, "rb") as stream:
            for record in FastIterator(stream, parse_http=False):
                name = f"{file.name}: {record.headers.get('WARC-Type')} {record.headers.get('WARC-Target-URI')}"
                self.expect(record.verify_block_digest(), f"{name}: block digest")
                if record.headers["WARC-Type"] == "response" and "WARC-Payload-Digest" in record.headers:
                    record.parse_http(quirks_mode=True)
                    self.expect(record.verify_payload_digest(), f"{name}: payload digest")

    def check_pages(self):
        for number, line in enumerate(open(self.folder / "pages.jsonl", encoding="utf-8"), 1):
            page = json.loads(line)
            kind, *found = self.records.get((page["warc"], page["offset"]), ("nothing",))
            self.expect(found == [page["url"], str(page["status"]), page["digest"]],
                        f"pages.jsonl:{number}: {page['url']} leads to {kind} {found}")
            self.expect((kind == "revisit") == ("revisit" in page), f"pages.jsonl:{number}: {page['url']} leads to a {kind}")
        return number

    def check_indexes(self):
        """Check that the crawl's index and those beside its files have the same lines."""
        whole = self.check_index(self.folder / "index.cdxj")
        parts = [line for file in self.folder.glob("warc/*.cdxj") for line in self.check_index(file)]
        self.expect(whole == sorted(parts), "index.cdxj is not the sum of the files' indexes")
        indexed = {(e["filename"], int(e["offset"])) for e in map(self.entry, whole)}
        for place in indexed ^ self.records.keys():
            self.expect(False, f"in the index or the WARC alone: {place} {self.records.get(place)}")
        for entry in map(self.entry, whole):
            found = self.records.get((entry["filename"], int(entry["offset"])))
            self.expect(found and found[1] == entry["url"], f"index: {entry['url']} leads to {found}")
        return len(whole)

    @staticmethod
    def entry(line):
        return json.loads(line.split(b" ", 2)[2])

    def check_index(self, file):
        lines = file.read_bytes().splitlines()
        self.expect(lines == sorted(lines), f"{file.name}: not sorted")
        return lines

    def run(self):
        self.read_warcs()
        pages = self.check_pages()
        indexed = self.check_indexes()
        for fault in self.faults:
            print("  " + fault)
        revisits = sum(kind == "revisit" for kind, *_ in self.records.values())
        print(f"{self.folder}: {pages} pages, {len(self.records)} records ({revisits} revisits), {indexed} index lines, "
              f"faults {len(self.faults)}")
        return len(self.faults)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(sum(Checker(folder).run() for folder in sys.argv[1:]) > 0)
