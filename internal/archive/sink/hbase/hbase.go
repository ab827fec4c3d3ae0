// Package hbase sends records to HBase through its REST gateway, one row per record.
//
//	hbase://HOST:8080/TABLE        http
//	hbase+https://HOST:8080/TABLE  https; ?ca=FILE adds trusted certificate authorities
//
// TABLE can be NAMESPACE:TABLE. A missing table is created with the column families page, text and meta.
//
// The row key is the URL with the host's labels reversed, followed by scheme, port and path:
// org.example.www:https/path?query. The pages of a domain are therefore adjacent. The timestamp of all cells is the
// time of the visit in milliseconds. Readers therefore see the newest version, whatever the order of writes.
package hbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
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
	scanRows = 1000 // rows of an answer
	timeout  = 2 * time.Minute
)

var families = []string{"page", "text", "meta"}

// A Sink is a table.
type Sink struct {
	*sink.HTTP
	table string
	body  []byte
}

// Open reaches a gateway, and makes the table if it is missing.
func Open(ctx context.Context, at *url.URL) (*Sink, error) {
	s := &Sink{table: strings.Trim(at.Path, "/")}
	if s.table == "" || strings.ContainsAny(s.table, `/\?# `) || at.Host == "" || len(sink.QueryWithoutTLS(at)) > 0 {
		return nil, advice.Usage("%s: a URL like hbase://host:8080/table is wanted", sink.RedactURL(at))
	}
	var err error
	s.HTTP, err = sink.NewHTTP(at, timeout, sink.Hints{Name: "HBase's REST gateway (hbase rest start)", Port: "8080",
		Login: "give a user whom the gateway knows: hbase://USER@HOST:8080/TABLE, and the password in KUMO_SINK_PASSWORD; " +
			"Kerberos (SPNEGO) kumo does not speak",
		Rights:  "the gateway's user needs the rights RWC on the table " + s.table + ", or RW on one that is there",
		Missing: "there is no table " + s.table + " any more: the same command makes it anew",
		Other:   "see the gateway's log"})
	if err != nil {
		return nil, err
	}
	if err := s.create(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// create makes the table if it is missing.
func (s *Sink) create(ctx context.Context) error {
	data, _, err := s.Do(ctx, http.MethodGet, "/"+s.table+"/schema", sink.JSON, nil)
	if answer, is := errors.AsType[*sink.StatusError](err); is && answer.Status == http.StatusNotFound {
		var columns []map[string]string
		for _, f := range families {
			columns = append(columns, map[string]string{"name": f})
		}
		schema, _ := json.Marshal(map[string]any{"name": s.table, "ColumnSchema": columns})
		if _, _, err = s.Do(ctx, http.MethodPut, "/"+s.table+"/schema", sink.JSON, schema); err != nil {
			return s.Explain("make the table of", err)
		}
		return nil
	}
	if err != nil {
		return s.Explain("look at the table of", err)
	}
	var schema struct{ ColumnSchema []struct{ Name string } }
	if err := json.Unmarshal(data, &schema); err != nil {
		return s.Explain("look at the table of", fmt.Errorf("its answer is not as HBase's REST gateway gives it: %w", err))
	}
	for _, f := range families {
		if !slices.ContainsFunc(schema.ColumnSchema, func(c struct{ Name string }) bool { return c.Name == f }) {
			return advice.With(fmt.Errorf("write to %s: the table has no column family %s", s.At, f),
				fmt.Sprintf("alter '%s', '%s' "+
					"in hbase shell adds it; or name another table, which kumo makes if it is missing", s.table, f))
		}
	}
	return nil
}

const asProtobuf = "application/x-protobuf"

// Put is Sink's.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	if len(batch) == 0 {
		return nil
	}
	s.body = s.body[:0]
	for i := range batch {
		s.body = appendRow(s.body, &batch[i])
	}
	if _, _, err := s.Do(ctx, http.MethodPut, "/"+s.table+"/batch", asProtobuf, s.body); err != nil {
		return s.Explain("write to", err)
	}
	return nil
}

// appendRow appends a row of a CellSet. All cells are there, empty ones, too: what a newer record does not have must
// not be left of an older one.
func appendRow(b []byte, r *sink.Record) []byte {
	var fields []byte
	if len(r.Fields) > 0 {
		fields, _ = json.Marshal(r.Fields) // they were JSON before
	}
	depth := ""
	if r.Depth >= 0 {
		depth = strconv.Itoa(r.Depth)
	}
	at := uint64(max(0, r.Time.UnixMilli()))
	row := appendBytes(nil, rowKey, Key(r.URL))
	for _, c := range []struct{ column, value string }{
		{"page:url", r.URL}, {"page:status", strconv.Itoa(r.Status)}, {"page:time", r.Time.Format(time.RFC3339)},
		{"page:type", r.Type}, {"page:charset", r.Charset}, {"page:bytes", strconv.FormatInt(r.Bytes, 10)},
		{"page:digest", r.Digest}, {"page:links", strconv.Itoa(r.Links)}, {"page:truncated", r.Truncated},
		{"page:host", r.Host},
		{"page:depth", depth}, {"page:noindex", strconv.FormatBool(r.NoIndex)}, {"page:canonical", r.Canonical},
		{"text:lang", r.Lang}, {"text:title", r.Title}, {"text:h1", r.H1}, {"text:description", r.Description},
		{"text:headline", r.Headline}, {"text:author", r.Author}, {"text:published", r.Published}, {"text:text", r.Text},
		{"meta:fields", string(fields)}, {"meta:cut", strconv.FormatBool(r.Cut)},
	} {
		cell := appendBytes(nil, cellColumn, c.column)
		cell = appendVarint(cell, cellTime, at)
		row = appendBytes(row, rowCells, appendBytes(cell, cellData, c.value))
	}
	return appendBytes(b, setRows, row)
}

// Key is the row key of a URL.
func Key(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return rawURL
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err != nil {
		labels := strings.Split(host, ".")
		slices.Reverse(labels)
		host = strings.Join(labels, ".")
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	key := host + ":" + u.Scheme
	if port := u.Port(); port != "" {
		key += ":" + port
	}
	_, rest, _ := strings.Cut(rawURL, "://")
	if at := strings.IndexAny(rest, "/?"); at >= 0 { // as it is written, so that two URLs have two keys
		return key + rest[at:]
	}
	return key
}

// Flush is Sink's: a row is visible once it is there.
func (s *Sink) Flush(context.Context) error { return nil }

// Each is Lister's.
func (s *Sink) Each(ctx context.Context, f func(url string, version time.Time) error) error {
	ask := appendBytes(nil, scanColumns, "page:url")
	ask = appendVarint(ask, scanBatch, 1)
	ask = appendVarint(ask, scanCaching, scanRows)
	_, head, err := s.Do(ctx, http.MethodPut, "/"+s.table+"/scanner", asProtobuf, ask)
	if err != nil {
		return s.Explain("read", err)
	}
	at, err := url.Parse(head.Get("Location"))
	if err != nil || !strings.HasPrefix(at.Path, "/") {
		return s.Explain("read", errors.New("its answer names no scanner"))
	}
	// it ends by itself, too
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
