package mcp

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addBatches adds the tools for batch crawls, whose storage locations have collections with days.
func (s *server) addBatches(srv *mcp.Server) {
	add(srv, "collections", "List the collections of batch crawls, which are sets of sites, often of one language, with "+
		"their days. Without a name, if there are several batch crawls: list these.", s.collections)
	add(srv, "days", "Show the results of days of collections, newest first: numbers of pages and sites, unchanged "+
		"pages, languages. With a collection and a day: everything about that day, with its counters, jobs and "+
		"files.", s.days)
	add(srv, "records", "List the pages that were new or changed on a day of a collection, sorted by URL, with "+
		"language, encoding and headline.", s.records)
	add(srv, "search_records", "Search the pages of batch crawls by words, on all days or some, newest day first. "+
		"Each call scans a limited part; if the answer has \"cut\", the search ended early: repeat it with "+
		"\"next\" as cursor. Specifying a collection and a day is faster.", s.searchRecords)
	add(srv, "read_record", "Read a page of a day of a batch crawl: as Markdown, as plain text or XML from the day's "+
		"record, or the header fields of its answer. For a page that was unchanged on that day, the text comes from "+
		"an earlier day. Long texts are returned in parts.", s.readRecord)
}

// Arguments of tools.
type (
	ofBatch struct {
		Batch string `json:"batch,omitempty" jsonschema:"the name of the batch crawls, as listed by collections; not needed if there is only one"`
	}
	ofDay struct {
		ofBatch
		Collection string `json:"collection" jsonschema:"the collection's code or directory, as listed by collections"`
		Day        string `json:"day,omitempty" jsonschema:"a day, 2026-11-26; default: the last one"`
	}
	language struct {
		Other bool `json:"other,omitempty" jsonschema:"only pages in other languages, which are stored separately"`
	}
)

func (l language) in(q query) {
	if l.Other {
		q.Set("of", "other")
	}
}

// queryBatch queries a storage location of batch crawls.
func (s *server) queryBatch(ctx context.Context, of ofBatch, path string, q query) (map[string]any, error) {
	return s.queryNamed(ctx, "batches", "batch crawl", of.Batch, path, q)
}

// queryDay queries a day.
func (s *server) queryDay(ctx context.Context, of ofDay, path string, q query) (map[string]any, error) {
	if q.err != nil {
		return nil, q.err
	}
	if of.Collection == "" {
		return nil, errors.New("give a collection; the tool collections lists all")
	}
	at := "/collections/" + url.PathEscape(of.Collection) + "/days/" + url.PathEscape(cmp.Or(of.Day, "last"))
	return s.queryBatch(ctx, of.ofBatch, at+path, q)
}

type collectionsIn struct {
	ofBatch
	limited
	After string `json:"after,omitempty" jsonschema:"to continue: next of the previous answer"`
}

func (s *server) collections(ctx context.Context, in collectionsIn) (*mcp.CallToolResult, error) {
	q := in.params("after", in.After)
	if in.Batch == "" && q.err == nil {
		if all, err := s.listNames(ctx, "batches"); err != nil {
			return nil, err
		} else if len(all) != 1 {
			return result(s.REST.get(ctx, "/batches", nil))
		}
	}
	return result(s.queryBatch(ctx, in.ofBatch, "", q))
}

type daysIn struct {
	ofBatch
	limited
	Collection string `json:"collection,omitempty" jsonschema:"only the collection with this code or directory"`
	Day        string `json:"day,omitempty" jsonschema:"with a collection: everything about this day, 2026-11-26 or last"`
	After      string `json:"after,omitempty" jsonschema:"to continue: next of the previous answer"`
}

func (s *server) days(ctx context.Context, in daysIn) (*mcp.CallToolResult, error) {
	if in.Day != "" {
		return result(s.queryDay(ctx, ofDay{in.ofBatch, in.Collection, in.Day}, "", query{}))
	}
	q := in.params("collection", in.Collection, "after", in.After)
	return result(s.queryBatch(ctx, in.ofBatch, "/days", q))
}

type recordsIn struct {
	ofDay
	limited
	language
	Cursor string `json:"cursor,omitempty" jsonschema:"to continue: next of the previous answer"`
}

func (s *server) records(ctx context.Context, in recordsIn) (*mcp.CallToolResult, error) {
	q := in.params("cursor", in.Cursor)
	in.language.in(q)
	return result(withCursor(s.queryDay(ctx, in.ofDay, "/records", q)))
}

type searchRecordsIn struct {
	ofBatch
	limited
	language
	Words      string `json:"words" jsonschema:"words that must all occur in URL, headline or text, ignoring case"`
	Collection string `json:"collection,omitempty" jsonschema:"only the collection with this code or directory"`
	Day        string `json:"day,omitempty" jsonschema:"only this day, 2026-11-26, or this month or year"`
	Cursor     string `json:"cursor,omitempty" jsonschema:"to continue: next of the previous answer"`
}

func (s *server) searchRecords(ctx context.Context, in searchRecordsIn) (*mcp.CallToolResult, error) {
	q := in.params("words", in.Words, "collection", in.Collection, "day", in.Day, "cursor", in.Cursor)
	in.language.in(q)
	x, err := s.queryBatch(ctx, in.ofBatch, "/search", q)
	if cut, is := x["cut"].(string); is {
		x["cut"] = cut + endedEarly
	}
	return result(x, err)
}

type readRecordIn struct {
	ofDay
	part
	URL string `json:"url" jsonschema:"the page's URL"`
	As  string `json:"as,omitempty" jsonschema:"markdown (default); text; comments; xml: the record; or headers: the answer's header fields"`
}

func (s *server) readRecord(ctx context.Context, in readRecordIn) (*mcp.CallToolResult, error) {
	q := params("url", in.URL, "as", in.As)
	in.in(q)
	x, err := s.queryDay(ctx, in.ofDay, "/page", q)
	return textResult(x, err, "\"became\" is the outcome of the URL; as=headers returns the header fields of its "+
		"answer")
}
