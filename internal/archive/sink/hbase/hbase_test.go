package hbase

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_HBASE"))
	if err != nil {
		t.Fatal(err)
	}
	fields := func(t *testing.T, place, of string) []byte {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+at.Host+"/"+place+"/"+url.PathEscape(Key(of))+"/meta:fields", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", sink.JSON)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var set struct {
			Row []struct {
				Cell []struct {
					Value []byte `json:"$"`
				}
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&set); err != nil || len(set.Row) != 1 || len(set.Row[0].Cell) != 1 {
			t.Fatalf("%s: %+v, %v", of, set, err)
		}
		return set.Row[0].Cell[0].Value
	}
	sinktest.Run(t, sinktest.Suite{Addr: at.Host, Versions: true, Secret: "hush", Fields: fields,
		Open: func(ctx context.Context, addr, place string) (sink.Sink, error) {
			return open(ctx, "hbase://me:hush@"+addr+"/"+place)
		}})
}

func TestKeys(t *testing.T) {
	keys := map[string]string{}
	for url, want := range map[string]string{
		"https://www.example.org/path?q=1": "org.example.www:https/path?q=1",
		"http://www.example.org/path?q=1":  "org.example.www:http/path?q=1",
		"http://example.org:8080/":         "org.example:http:8080/",
		"http://192.0.2.7/a%2Fb":           "192.0.2.7:http/a%2Fb",
		"http://192.0.2.7/a/b":             "192.0.2.7:http/a/b",
		"http://[2001:db8::1]:8080/":       "[2001:db8::1]:http:8080/",
		"http://[2001:db8::1]/?x=/":        "[2001:db8::1]:http/?x=/",
		"http://example.org?x":             "org.example:http?x",
	} {
		got := Key(url)
		if got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		if was := keys[got]; was != "" {
			t.Errorf("%s and %s have one key", was, url)
		}
		keys[got] = url
	}
}

func TestErrors(t *testing.T) {
	status, schema := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, schema)
	}))
	defer server.Close()
	at := strings.Replace(server.URL, "http://", "hbase://me:hush@", 1) + "/pages"
	for _, c := range []struct {
		status     int
		text, want string
		temporary  bool
	}{
		{401, "who?\n at org.apache", "401: who?", false}, {403, "no", "403", false}, {404, "Not found", "404", false},
		{503, "Unavailable", "503", true}, {500, "x", "500", true}, {429, "x", "429", true},
		{200, "<html>", "invalid response from HBase's REST gateway", false},
		{200, `{"name":"pages","ColumnSchema":[{"name":"page"},{"name":"text"}]}`, "no column family meta", false},
	} {
		status, schema = c.status, c.text
		_, err := open(t.Context(), at)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") ||
			sink.IsTemporary(err) != c.temporary {
			t.Errorf("%d: %v", c.status, err)
		}
		if !c.temporary {
			sinktest.CheckError(t, err, "hush")
		}
	}
	for _, bad := range []string{"", "/", "/a/b", "/a?b=c"} {
		_, err := open(t.Context(), "hbase://me:hush@localhost"+bad)
		sinktest.CheckError(t, err, "hush", "hbase://host:8080/table")
	}
}

func FuzzCells(f *testing.F) {
	rec := sinktest.Record(1)
	f.Add(appendRow(nil, &rec))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(_ *testing.T, set []byte) {
		_ = eachCell(set, func(string, int64) error { return nil })
	})
}

func TestRows(t *testing.T) {
	rec, values := sinktest.Record(1), map[string]bool{}
	err := eachCell(appendRow(nil, &rec), func(value string, at int64) error {
		if values[value] = true; !time.UnixMilli(at).Equal(rec.Time) {
			t.Errorf("%s is of %d", value, at)
		}
		return nil
	})
	if err != nil || !values[rec.URL] || !values[rec.Text] || !values["200"] {
		t.Errorf("%v: %v", err, values)
	}
}

func TestSecured(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_HBASE"))
	if err != nil {
		t.Fatal(err)
	}
	way := sinktest.TLSProxy(t, at.Host)
	sinktest.RunTLS(t, func(ctx context.Context, ca, password, place string) (sink.Sink, error) {
		u := url.URL{Scheme: "hbase+https", User: url.UserPassword(sinktest.User, password), Host: way, Path: "/" + place}
		if ca != "" {
			u.RawQuery = url.Values{"ca": {ca}}.Encode()
		}
		return open(ctx, u.String())
	})
}
