// Package verify checks the files of a crawl against each other.
//
// Each file is read once from its beginning to its end: WARC files record by record with their digests, indexes, lists
// and logs line by line, the state by the packages that keep it. What each says of a URL is a claim. Claims are sorted
// by URL, outside of memory, and joined with the URL database, which is sorted by URL, too: what one file says of a URL
// is there beside what the others say, however many URLs there are, and no file is searched. Memory is bounded by the
// sorter's share, the largest record, and what opening the crawl takes (filters, a record a host).
//
// Nothing is written into the crawl's folder. Its files are looked at as the crawl's next start would leave them: cut
// back to the lengths that the journal has. What is behind those is not committed, which is what a kill leaves, and no
// fault.
package verify
