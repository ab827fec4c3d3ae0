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
	scanRows = 1000 // rows per response
	timeout  = 2 * time.Minute
)

var families = []string{"page", "text", "meta"}

// A Sink is a table.
type Sink struct {
	*sink.HTTP
	table string
	body  []byte
}

// Open connects to a gateway, and creates the table if it does not exist.
func Open(ctx context.Context, at *url.URL) (*Sink, error) {
	s := &Sink{table: strings.Trim(at.Path, "/")}
	if s.table == "" || strings.ContainsAny(s.table, `/\?# `) || at.Host == "" || len(sink.QueryWithoutTLS(at)) > 0 {
		return nil, advice.Usage("%s: want a URL such as hbase://host:8080/table", sink.RedactURL(at))
	}
	var err error
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
		for _, f := range families {
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
	for _, f := range families {
		if !slices.ContainsFunc(schema.ColumnSchema, func(c struct{ Name string }) bool { return c.Name == f }) {
			return advice.With(fmt.Errorf("write to %s: the table has no column family %s", s.At, f),
				fmt.Sprintf("run alter '%s', '%s' "+
					"in hbase shell, or name a new table, which kumo creates", s.table, f))
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
		s.body = appendRow(s.body, &batch[i])
	}
	if _, _, err := s.Do(ctx, http.MethodPut, "/"+s.table+"/batch", asProtobuf, s.body); err != nil {
		return s.Explain("write to", err)
	}
	return nil
}

// appendRow appends a row of a CellSet. It has all cells, even empty ones, so that no cell of an older record remains.
func appendRow(b []byte, r *sink.Record) []byte {
	var fields []byte
	if len(r.Fields) > 0 {
		fields, _ = json.Marshal(r.Fields) // cannot fail: the values were parsed from JSON
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

// Key returns the row key of a URL.
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
	if at := strings.IndexAny(rest, "/?"); at >= 0 { // not normalized, so that different URLs have different keys
		return key + rest[at:]
	}
	return key
}

// Flush implements sink.Sink: rows are visible at once.
func (s *Sink) Flush(context.Context) error { return nil }

// Each implements sink.Lister.
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
