package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
)

func open(ctx context.Context, at string) (sink.Sink, error) {
	u, err := sink.Parse(at)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, u)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func TestContract(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_OPENSEARCH"))
	if err != nil {
		t.Fatal(err)
	}
	sinktest.Run(t, sinktest.Suite{Addr: at.Host, Versions: true, Secret: "hush",
		Fields: func(t *testing.T, place, of string) []byte {
			var doc struct{ Fields json.RawMessage }
			get(t, "http://"+at.Host+"/"+place+"/_source/"+url.PathEscape(sink.ID(of)), &doc)
			return doc.Fields
		},
		Open: func(ctx context.Context, addr, place string) (sink.Sink, error) {
			return open(ctx, "opensearch://me:hush@"+addr+"/"+place)
		}})
}

// get sends a GET request to OpenSearch.
func get(t *testing.T, at string, to any) {
	t.Helper()
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", at, resp.Status, err)
	}
}

// Fields can be searched if the user created the index with a mapping for them.
func TestFieldsAreSearched(t *testing.T) {
	at, _ := url.Parse(sinktest.Server(t, "KUMO_TEST_OPENSEARCH"))
	index := fmt.Sprintf("offers-%d", rand.Uint32())
	mine := `{"mappings":{"properties":{"fields":{"properties":{"rule":{"type":"keyword"},
		"values":{"properties":{"price":{"type":"double"}}}}}}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+at.Host+"/"+index,
		strings.NewReader(mine))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.Body.Close() != nil ||
		resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	s, err := open(t.Context(), "opensearch://"+at.Host+"/"+index)
	if err != nil {
		t.Fatal(err)
	}
	batch := []sink.Record{sinktest.Record(1), sinktest.Record(2)}
	batch[1].Fields[0].Values = json.RawMessage(`{"price":99}`)
	if err := errors.Join(s.Put(t.Context(), batch), s.Flush(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	var found struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
			}
		}
	}
	get(t, "http://"+at.Host+"/"+index+"/_search?q="+url.QueryEscape("fields.rule:offer AND fields.values.price:>50"),
		&found)
	if len(found.Hits.Hits) != 1 || found.Hits.Hits[0].ID != batch[1].URL {
		t.Errorf("found is %+v", found)
	}
}

// A server that is overloaded or full gets all documents in the end, even if it rejects single documents.
func TestBusy(t *testing.T) {
	at, _ := url.Parse(sinktest.Server(t, "KUMO_TEST_OPENSEARCH"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: at.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch dice.IntN(5) { // only one goroutine sends requests
		case 0:
			http.Error(w, `{"error":{"type":"es_rejected_execution_exception","reason":"full"}}`, http.StatusTooManyRequests)
		case 1:
			http.Error(w, "<html>no upstream", http.StatusServiceUnavailable)
		case 2:
			if r.ContentLength > 20_000 {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
				return
			}
			fallthrough
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	defer front.Close()
	place := fmt.Sprintf("busy_%d", time.Now().UnixNano())
	retry := sink.Retry{Now: time.Now, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	to := strings.Replace(front.URL, "http://", "opensearch://", 1) + "/" + place
	if err := retry.Do(t.Context(), func() (err error) {
		retry.Sink,
			err = open(t.Context(), to)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const all = 600
	for i := 0; i < all; i += 60 {
		var batch []sink.Record
		for n := range 60 {
			batch = append(batch, sinktest.Record(i+n))
		}
		if err := retry.Put(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	direct, err := open(t.Context(), "opensearch://"+at.Host+"/"+place)
	if err != nil {
		t.Fatal(err)
	}
	if versions, times := sinktest.Contents(t, direct); len(versions) != all || len(times) != all {
		t.Errorf("%d documents", len(versions))
	}
}

// The status of each document in a bulk response counts: a temporary rejection is not a success.
func TestItems(t *testing.T) {
	var item atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case !strings.Contains(r.URL.Path, "_bulk"):
			fmt.Fprint(w, `{}`)
		default:
			fmt.Fprintf(w, `{"errors":true,"items":[{"index":{"status":201}},{"index":%s}]}`, item.Load())
		}
	}))
	defer server.Close()
	s, err := open(t.Context(), strings.Replace(server.URL, "http://", "opensearch://me:hush@", 1)+"/x")
	if err != nil {
		t.Fatal(err)
	}
	batch := []sink.Record{sinktest.Record(0), sinktest.Record(1)}
	for _, c := range []struct {
		item            string
		fails, lasts    bool
		names           string
		itemsAreMissing bool
	}{
		{item: `{"status":200}`},
		{item: `{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"newer"}}`},
		{item: `{"status":429,"error":{"type":"rejected","reason":"full"}}`, fails: true, names: "rejected: full"},
		{item: `{"status":503}`, fails: true, names: "503"},
		{item: `{"status":403,"error":{"type":"cluster_block_exception","reason":"disk"}}`, fails: true, names: "disk"},
		{item: `{"status":400,"error":{"type":"mapper_parsing_exception","reason":"[title]"}}`, fails: true, lasts: true,
			names: batch[1].URL},
		{item: `{"status":200}},{"index":{"status":200}`, fails: true, names: "3 documents of 2"},
	} {
		item.Store(c.item)
		err := s.Put(t.Context(), batch)
		if (err != nil) != c.fails || err != nil && (sink.IsTemporary(err) == c.lasts ||
			!strings.Contains(err.Error(), c.names)) {
			t.Errorf("%s: %v", c.item, err)
		}
		if c.lasts {
			sinktest.CheckError(t, err, "hush", "opensearch://me:xxxxx@")
		}
	}
}

func TestErrors(t *testing.T) {
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "hush" {
			t.Errorf("password %q", password)
		}
		w.WriteHeader(int(status.Load()))
		fmt.Fprint(w, `{"error":{"type":"security_exception","reason":"no permissions for [indices:admin/create]"}}`)
	}))
	defer server.Close()
	t.Setenv("KUMO_SINK_PASSWORD", "hush")
	for _, code := range []int64{401, 403, 404, 400, 302} {
		status.Store(code)
		_, err := open(t.Context(), strings.Replace(server.URL, "http://", "elasticsearch://me@", 1)+"/x")
		sinktest.CheckError(t, err, "hush", fmt.Sprint(code), "no permissions")
		if sink.IsTemporary(err) {
			t.Errorf("%d: %v is taken for one that is over soon", code, err)
		}
	}
	for _, bad := range []string{"", "/", "/A", "/a/b", "/_a", "/a?b=c", "/a*"} {
		_, err := open(t.Context(), "opensearch://me:hush@localhost"+bad)
		sinktest.CheckError(t, err, "hush", "opensearch://host:9200/index")
	}
}

func TestMappingIsJSON(t *testing.T) {
	if !json.Valid(mapping) {
		t.Error("mapping.json is none")
	}
}

func TestSecured(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_OPENSEARCH"))
	if err != nil {
		t.Fatal(err)
	}
	way := sinktest.TLSProxy(t, at.Host)
	sinktest.RunTLS(t, func(ctx context.Context, ca, password, place string) (sink.Sink, error) {
		u := url.URL{Scheme: "opensearch+https", User: url.UserPassword(sinktest.User, password), Host: way, Path: "/" +
			place}
		if ca != "" {
			u.RawQuery = url.Values{"ca": {ca}}.Encode()
		}
		return open(ctx, u.String())
	})
}

// A mismatch of http and TLS is reported with advice.
func TestTheOtherScheme(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	_, err := open(t.Context(), strings.Replace(plain.URL, "http://", "opensearch+https://me:hush@", 1)+"/pages")
	if sinktest.CheckError(t, err, "hush", "HTTPS client"); sink.IsTemporary(err) {
		t.Errorf("%v is taken for what is over by itself", err)
	}
	_, err = open(t.Context(), strings.Replace(plain.URL, "http://", "opensearch://", 1)+"/pages?ca=/tmp/ca.pem")
	sinktest.CheckError(t, err, "", "ca= requires TLS")
	_, err = open(t.Context(), strings.Replace(plain.URL, "http://", "opensearch+https://", 1)+"/pages?ca=/dev/null")
	sinktest.CheckError(t, err, "", "has no PEM certificate")
}
