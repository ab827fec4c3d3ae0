package ui

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"kumo/internal/app/lookup"
	"kumo/internal/base/page"
)

type recordPage struct {
	Records []lookup.Record `json:"records"` // newest first
	Next    *int64          `json:"next,omitempty"`
}

type headers struct {
	Status    int      `json:"status"`
	Headers   []header `json:"headers"`
	BodyBytes int      `json:"body_bytes"` // after content decoding
	Truncated string   `json:"truncated,omitempty"`
	Malformed string   `json:"malformed,omitempty"`
}

type header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type linkPage struct {
	Links []lookup.Link `json:"links"`
	All   int           `json:"all"` // total number
}

func filterOf(r *http.Request) lookup.Filter {
	return lookup.Filter{Status: r.FormValue("status"), Type: r.FormValue("type"), Prefix: r.FormValue("prefix"),
		Lang: r.FormValue("lang"), Day: r.FormValue("day")}
}

func (c *crawl) records(r *http.Request) (p recordPage, err error) {
	n, err := limit(r)
	if err != nil {
		return p, err
	}
	f := filterOf(r)
	if err := f.Check(); err != nil {
		return p, badRequest("%v", err)
	}
	cursor, err := cursorOf(r)
	if err != nil {
		return p, err
	}
	records, next, err := c.archive.List(r.Context(), f, cursor, n)
	p.Records = orEmpty(records)
	if next > 0 {
		p.Next = &next
	}
	return p, err
}

// record returns the record in a path.
func (set *crawlSet) record(r *http.Request) (*crawl, *lookup.Record, error) {
	c, err := set.find(r)
	if err != nil {
		return nil, nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, nil, badRequest("%q is not a record's id", cut(r.PathValue("id"), 40))
	}
	rec, err := c.archive.Record(id)
	return c, rec, err
}

// answer returns the answer of the record in a path.
func (set *crawlSet) answer(r *http.Request) (*page.Response, error) {
	c, rec, err := set.record(r)
	if err != nil {
		return nil, err
	}
	return c.archive.Answer(r.Context(), rec)
}

// document returns the document of the record in a path: for a rendered page that after its scripts.
func (set *crawlSet) document(r *http.Request) (*page.Response, error) {
	c, rec, err := set.record(r)
	if err != nil {
		return nil, err
	}
	return c.archive.Document(r.Context(), rec)
}

func (set *crawlSet) getRecord(r *http.Request) (any, error) {
	_, rec, err := set.record(r)
	return rec, err
}

func getHeaders(resp *page.Response, _ *http.Request) (headers, error) { return headersOf(resp), nil }

func headersOf(resp *page.Response) headers {
	h := headers{Status: resp.Status, Headers: []header{}, BodyBytes: len(resp.Body), Truncated: string(resp.Truncated),
		Malformed: resp.Malformed}
	for name, values := range resp.Header {
		for _, v := range values {
			h.Headers = append(h.Headers, header{name, v})
		}
	}
	slices.SortStableFunc(h.Headers, func(a, b header) int { return cmp.Compare(a.Name, b.Name) })
	return h
}

func getText(resp *page.Response, _ *http.Request) (*lookup.Text, error) { return lookup.TextOf(resp) }

func (set *crawlSet) getLinks(r *http.Request) (any, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	resp, err := set.document(r)
	if err != nil {
		return nil, err
	}
	return linksOf(resp, n)
}

func linksOf(resp *page.Response, n int) (linkPage, error) {
	links, all, err := lookup.Links(resp, n)
	return linkPage{orEmpty(links), all}, err
}
