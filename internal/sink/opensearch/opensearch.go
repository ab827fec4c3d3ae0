// Package opensearch is the sink for OpenSearch and Elasticsearch: a document a record.
//
// Batches go through the bulk API, each document with the time of its visit as external version: the server keeps the
// newest. An index that is missing is made with the mapping that kumo has for it (mapping.json); of one that is there the
// mapping is its owner's.
//
//	opensearch://USER:PASSWORD@HOST:9200/INDEX        http
//	opensearch+https://USER:PASSWORD@HOST:9200/INDEX  https
//
// So do elasticsearch:// and elasticsearch+https://. The password is better in KUMO_SINK_PASSWORD than in the URL.
package opensearch

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"kumo/internal/advice"
	"kumo/internal/sink"
)

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Lister = (*Sink)(nil)
)

//go:embed mapping.json
var mapping []byte

// What is sent and read at once.
const (
	mostBody   = 8 << 20  // bytes of a request
	mostAnswer = 64 << 20 // bytes
	scrolled   = 2000     // documents of an answer
	timeout    = time.Minute
)

// A Sink is an index.
type Sink struct {
	at     string // for people
	server string
	index  string
	user   *url.Userinfo
	http   *http.Client
	body   bytes.Buffer
}

// Open reaches a server, and makes the index if it is missing.
func Open(ctx context.Context, at *url.URL) (*Sink, error) {
	s := &Sink{at: sink.Hide(at), index: strings.Trim(at.Path, "/"), user: at.User, http: &http.Client{Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: timeout}}}
	if s.index == "" || strings.ContainsAny(s.index, `/\*?"<>| ,#:`) || strings.ToLower(s.index) != s.index ||
		strings.ContainsAny(s.index[:1], "_-+.") || at.Host == "" || at.RawQuery != "" {
		return nil, advice.Usage("%s: a URL like opensearch://host:9200/index is wanted, with an index in lower case", s.at)
	}
	scheme := "http"
	if strings.HasSuffix(at.Scheme, "+https") {
		scheme = "https"
	}
	host := at.Host
	if at.Port() == "" {
		host += ":9200"
	}
	s.server = scheme + "://" + host
	if password := os.Getenv("KUMO_SINK_PASSWORD"); at.User != nil && password != "" {
		if _, has := at.User.Password(); !has {
			s.user = url.UserPassword(at.User.Username(), password)
		}
	}
	err := s.do(ctx, http.MethodGet, "/"+s.index+"/_mapping?filter_path=*.mappings.dynamic", nil, nil)
	if answer, is := errors.AsType[*answerError](err); is && answer.status == http.StatusNotFound {
		err = s.do(ctx, http.MethodPut, "/"+s.index, mapping, nil)
		if answer, is := errors.AsType[*answerError](err); is && answer.Type == "resource_already_exists_exception" {
			err = nil // somebody else was quicker
		}
	}
	if err != nil {
		return nil, s.explain("prepare the index of", err)
	}
	return s, nil
}

// An answerError is what a server says that refuses something.
type answerError struct {
	status       int
	Type, Reason string
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("it answers %d", e.status)
	if e.Type != "" {
		text += " " + e.Type + ": " + e.Reason
	}
	return text
}

// busy reports whether the server has too much to do, or something in front of it is not there: or the disk is full, for
// which indexes are blocked until there is room.
func (e *answerError) busy() bool {
	return e.status == http.StatusTooManyRequests || e.status/100 == 5 || e.status == http.StatusRequestTimeout ||
		e.Type == "cluster_block_exception"
}

// do asks the server, and reads a good answer into to, if that is not nil.
func (s *Sink) do(ctx context.Context, method, path string, body []byte, to any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if req.Header.Set("Content-Type", "application/json"); strings.Contains(path, "_bulk") {
		req.Header.Set("Content-Type", "application/x-ndjson")
	}
	if s.user != nil {
		password, _ := s.user.Password()
		req.SetBasicAuth(s.user.Username(), password)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		if e, is := errors.AsType[*url.Error](err); is {
			err = e.Err
		}
		return sink.Temporary(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return sink.Temporary(err)
	}
	if resp.StatusCode/100 != 2 {
		said := struct {
			Error json.RawMessage `json:"error"`
		}{}
		e := &answerError{status: resp.StatusCode}
		if json.Unmarshal(data, &said) == nil && json.Unmarshal(said.Error, e) != nil {
			_ = json.Unmarshal(said.Error, &e.Reason) // some say no more than a sentence
		}
		return e
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("its answer is not as OpenSearch gives it: %w", err)
	}
	return nil
}

// Put is Sink's.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	s.body.Reset()
	first := 0
	for i := range batch {
		before := s.body.Len()
		if err := s.append(&batch[i]); err != nil {
			return err
		}
		if s.body.Len() > mostBody && i > first {
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

// send sends the body, which is of a batch.
func (s *Sink) send(ctx context.Context, batch []sink.Record) error {
	var answer struct {
		Errors bool
		Items  []map[string]struct {
			Status int
			Error  *answerError
		}
	}
	err := s.do(ctx, http.MethodPost, "/"+s.index+"/_bulk?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason",
		s.body.Bytes(), &answer)
	if e, is := errors.AsType[*answerError](err); is && e.status == http.StatusRequestEntityTooLarge && len(batch) > 1 {
		return s.halves(ctx, batch)
	}
	if err != nil {
		return s.explain("write to", err)
	}
	if len(answer.Items) != len(batch) {
		return sink.Temporary(fmt.Errorf("write to %s: it answers for %d documents of %d", s.at, len(answer.Items), len(batch)))
	}
	var busy error
	for i, item := range answer.Items {
		did := item["index"]
		if did.Status/100 == 2 || did.Status == http.StatusConflict { // a newer one is there
			continue
		}
		e := did.Error
		if e == nil {
			e = &answerError{}
		}
		if e.status = did.Status; !e.busy() {
			return s.explain("write "+batch[i].URL+" to", e)
		}
		busy = e
	}
	if busy != nil {
		return s.explain("write to", busy)
	}
	return nil
}

// halves sends a batch that is too large for the server in two.
func (s *Sink) halves(ctx context.Context, batch []sink.Record) error {
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

// Flush is Sink's: what was put is found from then on.
func (s *Sink) Flush(ctx context.Context) error {
	if err := s.do(ctx, http.MethodPost, "/"+s.index+"/_refresh", nil, nil); err != nil {
		return s.explain("refresh", err)
	}
	return nil
}

// Each is Lister's.
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
	ask := fmt.Appendf(nil, `{"size":%d,"_source":["url","time"],"sort":["_doc"]}`, scrolled)
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
	_ = s.do(ctx, http.MethodDelete, "/_search/scroll", end, nil) // it ends by itself, too
	return nil
}

// Close is Sink's.
func (s *Sink) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// explain says what went wrong with what, whether it may be over, and what to do.
func (s *Sink) explain(doing string, err error) error {
	said := fmt.Errorf("%s %s: %w", doing, s.at, err)
	e, is := errors.AsType[*answerError](err)
	switch {
	case !is && sink.IsTemporary(err):
		return sink.Temporary(advice.With(said, "is OpenSearch running there, with http or (opensearch+https://) https, and may "+
			"this machine reach it?"))
	case !is:
		return advice.With(said, "is it OpenSearch that is running there?")
	case e.busy():
		return sink.Temporary(said)
	case e.status == http.StatusUnauthorized:
		return advice.With(said, "give a user who may write to the index: opensearch://USER@HOST:9200/INDEX, and the password "+
			"in KUMO_SINK_PASSWORD")
	case e.status == http.StatusForbidden:
		return advice.With(said, fmt.Sprintf("the user needs the rights create_index (or an index %s that is there), index and "+
			"read on it", s.index))
	case e.status == http.StatusNotFound:
		return advice.With(said, "there is no index "+s.index+" any more: the same command makes it anew")
	case e.status == http.StatusRequestEntityTooLarge:
		return advice.With(said, "let the server take longer requests (http.max_content_length, or a proxy's limit)")
	}
	return advice.With(said, fmt.Sprintf("the index %s may have another mapping than kumo's: name one that is not there, and "+
		"kumo makes it", s.index))
}
