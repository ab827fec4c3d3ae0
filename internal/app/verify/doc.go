// Package verify checks the files of a crawl for consistency with each other.
//
// Each file is read once, sequentially; of the WARC files, one for each processor at once. WARC files are read record by
// record with their digests, and indexes, lists and logs line by line. The packages that own the state read the state.
//
// Each statement of a file about a URL is a claim. Claims are sorted by URL on disk and joined with the URL database,
// which is also sorted by URL. All claims about a URL are thus compared at once, however many URLs there are, without
// searching any file. Memory is bounded by the sorter's share, the largest record, and the memory that opening the
// crawl takes (filters, a record per host).
//
// Nothing is written to the crawl's folder. Files are read only up to the lengths in the journal, as the crawl's next
// start would cut them. Data after that is uncommitted, as after a kill, and not reported as a fault.
package verify
