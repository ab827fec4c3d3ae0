package item

// A Revisit is a visit to a URL that was visited before, as other nodes of a crawl remember it.
type Revisit struct {
	// identifies the visit among those of the URL, in their order: the Unix time of the visit before
	Number uint64
	Data   []byte // of the URL and its last visit; nil if the URL is not visited again
}
