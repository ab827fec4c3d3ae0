// Package hbase sends records to HBase through its REST gateway, one row per record.
//
//	hbase://HOST:8080/TABLE        http
//	hbase+https://HOST:8080/TABLE  https; ?ca=FILE adds trusted certificate authorities
//
// TABLE can be NAMESPACE:TABLE. A missing table is created with the column families page, text, meta and f. Parameters
// of the URL choose other families and row keys; see layout.
//
// By default, the row key is the URL with the host's labels reversed, followed by scheme, port and path:
// org.example.www:https/path?query. The pages of a domain are therefore adjacent. The timestamp of all cells is the
// time of the visit in milliseconds. Readers therefore see the newest version, whatever the order of writes.
//
// Each field that the crawl's rules extract has a column, f:price, besides the cell meta:fields with all records as
// JSON. A field that the page lacks is an empty cell, so that the value of an earlier visit does not remain.
package hbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
)

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Lister = (*Sink)(nil)
)

const (
	scanRows = 1000 // rows per response
	timeout  = 2 * time.Minute
)

// A Sink is a table.
type Sink struct {
	*sink.HTTP
	table  string
	layout layout
	body   []byte
}

// Check checks the form of a sink's URL.
func Check(at *url.URL) error {
	_, err := parse(at)
	return err
}

// parse parses a sink's URL, and makes no connection.
func parse(at *url.URL) (*Sink, error) {
	s := &Sink{table: strings.Trim(at.Path, "/")}
	if s.table == "" || strings.ContainsAny(s.table, `/\?# `) || at.Host == "" {
		return nil, advice.Usage("%s: want a URL such as hbase://host:8080/table", sink.RedactURL(at))
	}
	var err error
	if s.layout, err = parseLayout(sink.QueryWithoutTLS(at)); err != nil {
		return nil, advice.Usage("%s: %w (a URL such as hbase://host:8080/table?key=salt)", sink.RedactURL(at), err)
	}
	return s, nil
}

// Open connects to a gateway, and creates the table if it does not exist.
func Open(ctx context.Context, at *url.URL) (*Sink, error) {
	s, err := parse(at)
	if err != nil {
		return nil, err
	}
	s.HTTP, err = sink.NewHTTP(at, timeout, sink.Hints{Name: "HBase's REST gateway (hbase rest start)", Port: "8080",
		Login: "set a user of the gateway: hbase://USER@HOST:8080/TABLE, and the password in KUMO_SINK_PASSWORD; " +
			"kumo does not support Kerberos (SPNEGO)",
		Rights:  "the gateway's user needs the permissions RWC on the table " + s.table + ", or RW if it exists",
		Missing: "the table " + s.table + " was removed: the same command creates it again",
		Other:   "see the gateway's log"})
	if err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// create creates the table if it does not exist.
func (s *Sink) create(ctx context.Context) error {
	data, _, err := s.Do(ctx, http.MethodGet, "/"+s.table+"/schema", sink.JSON, nil)
	if answer, is := errors.AsType[*sink.StatusError](err); is && answer.Status == http.StatusNotFound {
		var columns []map[string]string
		for _, f := range s.layout.families() {
			columns = append(columns, map[string]string{"name": f})
		}
		schema, _ := json.Marshal(map[string]any{"name": s.table, "ColumnSchema": columns})
		if _, _, err = s.Do(ctx, http.MethodPut, "/"+s.table+"/schema", sink.JSON, schema); err != nil {
			return s.Explain("create the table of", err)
		}
		return nil
	}
	if err != nil {
		return s.Explain("check the table of", err)
	}
	var schema struct{ ColumnSchema []struct{ Name string } }
	if err := json.Unmarshal(data, &schema); err != nil {
		return s.Explain("check the table of", fmt.Errorf("invalid response from HBase's REST gateway: %w", err))
	}
	for _, f := range s.layout.families() {
		if !slices.ContainsFunc(schema.ColumnSchema, func(c struct{ Name string }) bool { return c.Name == f }) {
			return advice.With(fmt.Errorf("write to %s: the table has no column family %s", s.At, f),
				fmt.Sprintf("run alter '%s', '%s' in hbase shell, name a new table, which kumo creates, or name the "+
					"table's families in the URL (docs/reference/sinks.md)", s.table, f))
		}
	}
	return nil
}

const asProtobuf = "application/x-protobuf"

// Put implements sink.Sink.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	if len(batch) == 0 {
		return nil
	}
	s.body = s.body[:0]
	for i := range batch {
		s.body = s.layout.appendRow(s.body, &batch[i])
	}
	if _, _, err := s.Do(ctx, http.MethodPut, "/"+s.table+"/batch", asProtobuf, s.body); err != nil {
		return s.Explain("write to", err)
	}
	return nil
}

// Flush implements sink.Sink: rows are visible at once.
func (s *Sink) Flush(context.Context) error { return nil }

// Each implements sink.Lister.
func (s *Sink) Each(ctx context.Context, f func(url string, version time.Time) error) error {
	ask := appendBytes(nil, scanColumns, s.layout.page+":url")
	ask = appendVarint(ask, scanBatch, 1)
	ask = appendVarint(ask, scanCaching, scanRows)
	_, head, err := s.Do(ctx, http.MethodPut, "/"+s.table+"/scanner", asProtobuf, ask)
	if err != nil {
		return s.Explain("read", err)
	}
	at, err := url.Parse(head.Get("Location"))
	if err != nil || !strings.HasPrefix(at.Path, "/") {
		return s.Explain("read", errors.New("the response names no scanner"))
	}
	// The scanner also expires by itself.
	defer func() { _, _, _ = s.Do(context.WithoutCancel(ctx), http.MethodDelete, at.Path, asProtobuf, nil) }()
	for {
		data, _, err := s.Do(ctx, http.MethodGet, fmt.Sprintf("%s?n=%d", at.Path, scanRows), asProtobuf, nil)
		if err != nil {
			return s.Explain("read", err)
		}
		if len(data) == 0 {
			return nil
		}
		if err := eachCell(data, func(value string, at int64) error {
			return f(value,
				time.UnixMilli(at).UTC())
		}); err != nil {
			return err
		}
	}
}
