package hbase

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
	"kumo/internal/base/page"
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
	l, err := parseLayout(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l.appendRow(nil, &rec))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(_ *testing.T, set []byte) {
		_ = eachCell(set, func(string, int64) error { return nil })
	})
}

func TestRows(t *testing.T) {
	rec, values := sinktest.Record(1), map[string]bool{}
	l, err := parseLayout(nil)
	if err != nil {
		t.Fatal(err)
	}
	err = eachCell(l.appendRow(nil, &rec), func(value string, at int64) error {
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

// cells returns the cells of a record's row by column.
func cells(t *testing.T, l layout, r *sink.Record) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := eachField(l.appendRow(nil, r), func(_ int, _ uint64, row []byte) error {
		return eachField(row, func(field int, _ uint64, v []byte) error {
			if field == rowKey {
				all["key"] = string(v)
				return nil
			}
			var column, value string
			err := eachField(v, func(field int, _ uint64, v []byte) error {
				switch field {
				case cellColumn:
					column = string(v)
				case cellData:
					value = string(v)
				}
				return nil
			})
			if _, twice := all[column]; twice {
				t.Errorf("%s is there twice", column)
			}
			all[column] = value
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLayout(t *testing.T) {
	rec := sinktest.Record(1)
	rec.URL, rec.Host = "https://shop.example/p/1", "shop.example"
	rec.Rules = []page.FieldRule{{Name: "product", Fields: []string{"title", "price", "tags", "sold"}},
		{Name: "offer", Fields: []string{"price"}}, {Name: "review", Each: true, Fields: []string{"by"}},
		{Name: "none", Each: true, Fields: []string{"x"}}}
	rec.Fields = []sink.Fields{{Rule: "product", Values: []byte(`{"title":"a \"b\"","price":12.50,"tags":["x","y"]}`)},
		{Rule: "offer", Values: []byte(`{"price":99}`)}, {Rule: "review", Values: []byte(`{"by":"me"}`)},
		{Rule: "filter", Values: []byte(`{"words":7}`)}}
	for query, want := range map[string]map[string]string{
		"": {"key": "example.shop:https/p/1", "page:url": rec.URL, "f:title": `a "b"`, "f:price": "12.50",
			"f:tags": `["x","y"]`, "f:sold": "", "f:review": `[{"by":"me"}]`, "f:none": "", "f:words": "7"},
		"key=url&column=rule.field&fields=x": {"key": rec.URL, "x:product.price": "12.50", "x:offer.price": "99",
			"x:review": `[{"by":"me"}]`, "x:filter.words": "7"},
		"key=hash&page=a&text=a&meta=a&fields=": {"key": "e48d682dce9c3638ad997aee013b57c9", "a:url": rec.URL,
			"a:title": rec.Title},
		"key=salt": {"key": "e4:example.shop:https/p/1"},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		l, err := parseLayout(q)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		got := cells(t, l, &rec)
		for column, value := range want {
			if is, has := got[column]; !has || is != value {
				t.Errorf("%s: %s is %q (%v), want %q", query, column, is, has, value)
			}
		}
		for column := range got {
			if family, _, _ := strings.Cut(column, ":"); column != "key" && !slices.Contains(l.families(), family) {
				t.Errorf("%s: %s is in none of the families %v", query, column, l.families())
			}
		}
	}
	for _, bad := range []string{"key=row", "page=a:b", "page=", "column=x", "fields=meta", "fields=a&page=a", "b=c"} {
		if q, err := url.ParseQuery(bad); err != nil {
			t.Fatal(err)
		} else if _, err := parseLayout(q); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// A field that a page no longer has is not in its row, whatever the order in which the visits are sent.
func TestColumns(t *testing.T) {
	at := sinktest.Server(t, "KUMO_TEST_HBASE") + fmt.Sprintf("/columns%d?fields=g&key=salt", time.Now().UnixNano())
	s, err := open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	old := sinktest.Record(1)
	old.Rules = []page.FieldRule{{Name: "product", Fields: []string{"title", "price"}}}
	old.Fields = []sink.Fields{{Rule: "product", Values: []byte(`{"title":"a","price":12.50}`)}}
	now := old
	now.Time = now.Time.Add(time.Hour)
	now.Fields = []sink.Fields{{Rule: "product", Values: []byte(`{"title":"b"}`)}}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	get := func(column string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+u.Host+u.Path+"/"+url.PathEscape(s.(*Sink).layout.key(now.URL))+"/"+column, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/octet-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		value, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", column, resp.StatusCode, value, err)
		}
		return string(value)
	}
	put := func(r sink.Record) {
		r.Fit()
		if err := s.Put(t.Context(), []sink.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	put(old)
	if title, price := get("g:title"), get("g:price"); title != "a" || price != "12.50" {
		t.Errorf("%q for %q", title, price)
	}
	put(now)
	put(old) // by a node that was slow
	if title, price := get("g:title"), get("g:price"); title != "b" || price != "" {
		t.Errorf("%q for %q", title, price)
	}
}
