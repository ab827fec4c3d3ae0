package mcp

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addBatches adds the tools for batch crawls: places with collections, of which each has days.
func (s *server) addBatches(srv *mcp.Server) {
	add(srv, "collections", "List the collections of batch crawls, which are sets of sites, often of one language, with "+
		"their days. Without a name, where there are several places of batch crawls: list these.", s.collections)
	add(srv, "days", "Say what days of collections came to, the newest first: pages, sites, what was unchanged, "+
		"languages. With a collection and a day: that day whole, with what was counted, its jobs and files.", s.days)
	add(srv, "records", "List the pages that a day of a collection has found new or changed, in the order of URLs, with "+
		"language, encoding and headline.", s.records)
	add(srv, "search_records", "Find pages of batch crawls by words, in all days or some, the newest day first. A "+
		"bounded part is gone through; the answer says in \"cut\" if the search ended early: then ask again with "+
		"\"next\" as cursor. A collection and a day make it faster.", s.searchRecords)
	add(srv, "read_record", "Read a page of a day of a batch crawl: as Markdown, as plain text or XML as the day's "+
		"record has it, or the header fields of its answer. Of a page that was unchanged that day the text is that of "+
		"the day that has it. Long ones are given in parts.", s.readRecord)
}

// Parts of questions.
type (
	ofBatch struct {
		Batch string `json:"batch,omitempty" jsonschema:"the place of batch crawls, as collections names it; not needed where there is one"`
	}
	ofDay struct {
		ofBatch
		Collection string `json:"collection" jsonschema:"the collection's code or directory, as collections lists it"`
		Day        string `json:"day,omitempty" jsonschema:"a day, 2026-11-26; the last one unless given"`
	}
	language struct {
		Other bool `json:"other,omitempty" jsonschema:"only pages in other languages, which are kept apart"`
	}
)

func (l language) in(q query) {
	if l.Other {
		q.Set("of", "other")
	}
}

// queryBatch asks something of a place of batch crawls.
func (s *server) queryBatch(ctx context.Context, of ofBatch, path string, q query) (map[string]any, error) {
	return s.queryNamed(ctx, "batches", "place of batch crawls", of.Batch, path, q)
}

// queryDay asks something of a day.
func (s *server) queryDay(ctx context.Context, of ofDay, path string, q query) (map[string]any, error) {
	if q.err != nil {
		return nil, q.err
	}
	if of.Collection == "" {
		return nil, errors.New("which collection? collections lists all")
	}
	at := "/collections/" + url.PathEscape(of.Collection) + "/days/" + url.PathEscape(cmp.Or(of.Day, "last"))
	return s.queryBatch(ctx, of.ofBatch, at+path, q)
}

type collectionsIn struct {
	ofBatch
	limited
	After string `json:"after,omitempty" jsonschema:"go on: next of the answer before"`
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
	Collection string `json:"collection,omitempty" jsonschema:"only of the collection with this code or directory"`
	Day        string `json:"day,omitempty" jsonschema:"with a collection: this day whole, 2026-11-26 or last"`
	After      string `json:"after,omitempty" jsonschema:"go on: next of the answer before"`
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
	Cursor string `json:"cursor,omitempty" jsonschema:"go on: next of the answer before"`
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
	Words      string `json:"words" jsonschema:"words that all have to be in URL, headline or text, in whatever case"`
	Collection string `json:"collection,omitempty" jsonschema:"only of the collection with this code or directory"`
	Day        string `json:"day,omitempty" jsonschema:"only of this day, 2026-11-26, or of this month or year"`
	Cursor     string `json:"cursor,omitempty" jsonschema:"go on: next of the answer before"`
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
	As  string `json:"as,omitempty" jsonschema:"markdown unless given; text; xml: the record; or headers: the answer's header fields"`
}

func (s *server) readRecord(ctx context.Context, in readRecordIn) (*mcp.CallToolResult, error) {
	q := params("url", in.URL, "as", in.As)
	in.in(q)
	x, err := s.queryDay(ctx, in.ofDay, "/page", q)
	return textResult(x, err, "\"became\" says what came of the URL, as=headers gives the header fields of its answer")
}
