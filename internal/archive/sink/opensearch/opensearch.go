// Package opensearch sends records to OpenSearch or Elasticsearch, one document per record.
//
// Batches use the bulk API. The external version of a document is the time of its visit, so that the server keeps the
// newest. A missing index is created with kumo's mapping (mapping.json). The mapping of an existing index is not
// changed.
//
//	opensearch://USER:PASSWORD@HOST:9200/INDEX        http
//	opensearch+https://USER:PASSWORD@HOST:9200/INDEX  https; ?ca=FILE adds trusted certificate authorities
//
// The schemes elasticsearch:// and elasticsearch+https:// are equivalent. Prefer KUMO_SINK_PASSWORD to a password in
// the URL.
package opensearch

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
)

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Lister = (*Sink)(nil)
)

//go:embed mapping.json
var mapping []byte

// Limits of requests and responses.
const (
	maxBody    = 8 << 20 // bytes of a request
	scrollSize = 2000    // documents per response
	timeout    = time.Minute
)

// A Sink is an index.
type Sink struct {
	*sink.HTTP
	index string
	body  bytes.Buffer
}

// Check checks the form of a sink's URL.
func Check(at *url.URL) error {
	_, err := parse(at)
	return err
}

// parse parses a sink's URL, and makes no connection.
func parse(at *url.URL) (*Sink, error) {
	s := &Sink{index: strings.Trim(at.Path, "/")}
	if s.index == "" || strings.ContainsAny(s.index, `/\*?"<>| ,#:`) || strings.ToLower(s.index) != s.index ||
		strings.ContainsAny(s.index[:1], "_-+.") || at.Host == "" || len(sink.QueryWithoutTLS(at)) > 0 {
		return nil, advice.Usage("%s: want a URL such as opensearch://host:9200/index, with the index in lower case",
			sink.RedactURL(at))
	}
	return s, nil
}

// Open connects to a server, and creates the index if it does not exist.
func Open(ctx context.Context, at *url.URL) (*Sink, error) {
	s, err := parse(at)
	if err != nil {
		return nil, err
	}
	s.HTTP, err = sink.NewHTTP(at, timeout, sink.Hints{Name: "OpenSearch", Port: "9200",
		Login: "set a user with access to the index: opensearch://USER@HOST:9200/INDEX, and the password in " +
			"KUMO_SINK_PASSWORD",
		Rights:  "the user needs the permissions create_index (or an existing index " + s.index + "), index and read on it",
		Missing: "the index " + s.index + " was removed: the same command creates it again",
		Other: "the index " + s.index + " may have another mapping than kumo's: name a new one, and kumo " +
			"makes it"})
	if err != nil {
		return nil, err
	}
	err = s.do(ctx, http.MethodGet, "/"+s.index+"/_mapping?filter_path=*.mappings.dynamic", nil, nil)
	if answer, is := errors.AsType[*answerError](err); is && answer.Status == http.StatusNotFound {
		err = s.do(ctx, http.MethodPut, "/"+s.index, mapping, nil)
		if answer, is := errors.AsType[*answerError](err); is && answer.Type == "resource_already_exists_exception" {
			err = nil // another process has created it
		}
	}
	if err != nil {
		return nil, s.explain("prepare the index of", err)
	}
	return s, nil
}

// An answerError is an error message of OpenSearch.
type answerError struct {
	sink.StatusError
	Type, Reason string
}

func (e *answerError) Error() string {
	if e.Type == "" && e.Reason == "" {
		return e.StatusError.Error()
	}
	return fmt.Sprintf("HTTP status %d %s: %s", e.Status, e.Type, e.Reason)
}

func (e *answerError) Unwrap() error { return &e.StatusError }

// busy reports whether the error is temporary. Indexes are also blocked while the disk is full.
func (e *answerError) busy() bool { return e.IsBusy() || e.Type == "cluster_block_exception" }

// do sends a request, and decodes the response into to, if that is not nil.
func (s *Sink) do(ctx context.Context, method, path string, body []byte, to any) error {
	form := sink.JSON
	if strings.Contains(path, "_bulk") {
		form = sink.Lines
	}
	data, _, err := s.Do(ctx, method, path, form, body)
	if a, is := errors.AsType[*sink.StatusError](err); is {
		said := struct {
			Error json.RawMessage `json:"error"`
		}{}
		e := &answerError{StatusError: *a}
		if json.Unmarshal(a.Body, &said) == nil && json.Unmarshal(said.Error, &struct{ Type, Reason *string }{&e.Type,
			&e.Reason}) != nil {
			_ = json.Unmarshal(said.Error, &e.Reason) // some servers return only a sentence
		}
		return e
	}
	if err != nil || to == nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("invalid response from OpenSearch: %w", err)
	}
	return nil
}

// Put implements sink.Sink.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	s.body.Reset()
	first := 0
	for i := range batch {
		before := s.body.Len()
		if err := s.append(&batch[i]); err != nil {
			return err
		}
		if s.body.Len() > maxBody && i > first {
			rest := bytes.Clone(s.body.Bytes()[before:])
			s.body.Truncate(before)
			if err := s.send(ctx, batch[first:i]); err != nil {
				return err
			}
			s.body.Reset()
			s.body.Write(rest)
			first = i
		}
	}
	if first == len(batch) {
		return nil
	}
	return s.send(ctx, batch[first:])
}

// append appends a document to the body.
func (s *Sink) append(r *sink.Record) error {
	type action struct {
		ID      string `json:"_id"`
		Version int64  `json:"version"`
		Type    string `json:"version_type"`
	}
	enc := json.NewEncoder(&s.body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(map[string]action{"index": {r.ID(), max(0, r.Time.UnixMilli()), "external_gte"}})
	return errors.Join(err, enc.Encode(r))
}

// send sends the body, which has the documents of batch.
func (s *Sink) send(ctx context.Context, batch []sink.Record) error {
	var answer struct {
		Errors bool
		Items  []map[string]struct {
			Status int
			Error  *struct{ Type, Reason string }
		}
	}
	err := s.do(ctx, http.MethodPost, "/"+s.index+
		"/_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason",
		s.body.Bytes(), &answer)
	if e, is := errors.AsType[*answerError](err); is && e.Status == http.StatusRequestEntityTooLarge && len(batch) > 1 {
		return s.splitBatch(ctx, batch)
	}
	if err != nil {
		return s.explain("write to", err)
	}
	if len(answer.Items) != len(batch) {
		return sink.Temporary(fmt.Errorf("write to %s: the response is for %d documents of %d", s.At, len(answer.Items),
			len(batch)))
	}
	var busy error
	for i, item := range answer.Items {
		did := item["index"]
		if did.Status/100 == 2 || did.Status == http.StatusConflict { // the server has a newer one
			continue
		}
		e := &answerError{StatusError: sink.StatusError{Status: did.Status}}
		if did.Error != nil {
			e.Type, e.Reason = did.Error.Type, did.Error.Reason
		}
		if !e.busy() {
			return s.explain("write "+batch[i].URL+" to", e)
		}
		busy = e
	}
	if busy != nil {
		return s.explain("write to", busy)
	}
	return nil
}

// splitBatch sends a batch that is too large for the server in two halves.
func (s *Sink) splitBatch(ctx context.Context, batch []sink.Record) error {
	for _, half := range [][]sink.Record{batch[:len(batch)/2], batch[len(batch)/2:]} {
		s.body.Reset()
		for i := range half {
			if err := s.append(&half[i]); err != nil {
				return err
			}
		}
		if err := s.send(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements sink.Sink: searches find all documents put before.
func (s *Sink) Flush(ctx context.Context) error {
	if err := s.do(ctx, http.MethodPost, "/"+s.index+"/_refresh", nil, nil); err != nil {
		return s.explain("refresh", err)
	}
	return nil
}

// Each implements sink.Lister.
func (s *Sink) Each(ctx context.Context, f func(url string, version time.Time) error) error {
	type hits struct {
		ID   string `json:"_scroll_id"`
		Hits struct {
			Hits []struct {
				Source struct {
					URL  string
					Time time.Time
				} `json:"_source"`
			}
		}
	}
	const keep = "2m"
	var some hits
	ask := fmt.Appendf(nil, `{"size":%d,"_source":["url","time"],"sort":["_doc"]}`, scrollSize)
	err := s.do(ctx, http.MethodPost, "/"+s.index+"/_search?scroll="+keep, ask, &some)
	for err == nil && len(some.Hits.Hits) > 0 {
		for _, hit := range some.Hits.Hits {
			if err := f(hit.Source.URL, hit.Source.Time.UTC()); err != nil {
				return err
			}
		}
		next, _ := json.Marshal(map[string]string{"scroll": keep, "scroll_id": some.ID})
		some = hits{}
		err = s.do(ctx, http.MethodPost, "/_search/scroll", next, &some)
	}
	if err != nil {
		return s.explain("read", err)
	}
	end, _ := json.Marshal(map[string]string{"scroll_id": some.ID})
	_ = s.do(ctx, http.MethodDelete, "/_search/scroll", end, nil) // the scroll also expires by itself
	return nil
}

// explain adds to an error what failed, whether it is temporary, and how to fix it.
func (s *Sink) explain(doing string, err error) error {
	said := fmt.Errorf("%s %s: %w", doing, s.At, err)
	switch e, is := errors.AsType[*answerError](err); {
	case is && e.busy():
		return sink.Temporary(said)
	case is && e.Status == http.StatusRequestEntityTooLarge:
		return advice.With(said, "allow longer requests on the server (http.max_content_length) or its proxy")
	}
	return s.Explain(doing, err)
}
