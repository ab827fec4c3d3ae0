package stats

import (
	"maps"
	"time"
)

// Documents counts the PDFs, office documents, e-books and images that a run has read.
type Documents struct {
	Read    int64   `json:"read"`    // documents of which all text or metadata could be read
	Pages   int64   `json:"pages"`   // of PDFs; slides, sheets and chapters of others
	Links   int64   `json:"links"`   // found in documents
	Seconds float64 `json:"seconds"` // total time of reading
	// number of documents whose text is missing or incomplete, by reason: see why_not in pages.jsonl
	WhyNot map[string]int64 `json:"why_not,omitempty"`
}

// Merge returns the sum of two nodes' counts. Either may be nil.
func (d *Documents) Merge(o *Documents) *Documents {
	if o == nil {
		return d
	}
	sum := *o
	sum.WhyNot = maps.Clone(o.WhyNot)
	if d == nil {
		return &sum
	}
	sum.Read += d.Read
	sum.Pages += d.Pages
	sum.Links += d.Links
	sum.Seconds += d.Seconds
	if sum.WhyNot == nil {
		sum.WhyNot = map[string]int64{}
	}
	addAll(sum.WhyNot, d.WhyNot)
	return &sum
}

// print prints a row, and one with the reasons why text is missing.
func (d *Documents) print(row func(name, format string, args ...any)) {
	if d == nil {
		return
	}
	if d.Read > 0 {
		mean := time.Duration(d.Seconds / float64(d.Read) * float64(time.Second)).Round(100 * time.Microsecond)
		row("documents", "%d read in this run, with %s and %s (%v each)", d.Read, Count(d.Pages, "pages"),
			Count(d.Links, "links"), mean)
	}
	list(row, "no text", d.WhyNot)
}
