package ask

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/filter"
	"kumo/internal/state/rank"
)

// scripted runs a shell script that answers each question with a line, where $id is the question's id.
func scripted(t *testing.T, points, answers string) *filter.Pool {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip(err)
	}
	script := `read -r hello; echo "{\"points\":[` + points + `]}"
while read -r line; do id=${line#*:}; id=${id%%,*}; ` + answers + `; done`
	p, err := filter.Open(t.Context(), filter.Config{Command: "/bin/sh -c '" + script + "'", Procs: 1,
		Default: filter.Keep, Check: Check,
		Env: filter.Environ(os.Environ())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestLinksAreEdited(t *testing.T) {
	first := scripted(t, `\"link\"`, `case $line in
*/drop*) echo "{\"id\":$id,\"drop\":\"no\"}";; */move*) echo "{\"id\":$id,\"url\":\"there\",\"rank\":2}";;
*/bad*) echo "{\"id\":$id,\"url\":\"mailto:x@y\"}";; *) echo "{\"id\":$id}";; esac`)
	second := scripted(t, `\"link\"`, `case $line in
*/there*\"depth\":3*) echo "{\"id\":$id,\"rank\":2}";; */drop*) echo nonsense;; *) echo "{\"id\":$id}";; esac`)
	h := Hooks([]*filter.Pool{first, second})
	if h.Request != nil || h.Record != nil {
		t.Error("hooks for what nobody asks")
	}
	var links []page.Link
	for _, name := range []string{"keep", "drop", "move", "bad"} {
		links = append(links, page.Link{URL: "http://a.test/dir/" + name, Kind: page.Anchor})
	}
	edits := make([]crawl.LinkEdit, len(links))
	for i := range edits {
		edits[i].URL = links[i].URL
	}
	if err := h.Link(&item.Item{URL: "http://a.test/dir/", Depth: 2}, links, edits); err != nil {
		t.Fatal(err)
	}
	by := "filter " + first.Name() + ": "
	for i, want := range []crawl.LinkEdit{{URL: links[0].URL}, {URL: links[1].URL, Veto: by + "no"},
		{URL: "http://a.test/dir/there", Lift: 2 * rank.LiftOf(2)},
		{URL: links[3].URL, Veto: by + "changed to an invalid URL: not http or https"}} {
		if got := edits[i]; got.URL != want.URL || got.Veto != want.Veto || got.Lift != want.Lift {
			t.Errorf("%s: %+v, want %+v", links[i].URL, got, want)
		}
	}
	if c := second.Counts(); c.Restarts() != 0 || c.Points["link"].Asked != 2 {
		t.Errorf("the second was asked about what the first has dropped: %+v", c)
	}
}

func TestRequestsGetFields(t *testing.T) {
	p := scripted(t, `\"request\"`, `case $line in
*/no*) echo "{\"id\":$id,\"drop\":true}";; */host*) echo "{\"id\":$id,\"header\":{\"host\":\"b\"}}";;
*) echo "{\"id\":$id,\"header\":{\"x-a\":\"b\"}}";; esac`)
	h := Hooks([]*filter.Pool{p})
	for url, want := range map[string]string{"http://a.test/": "b", "http://a.test/no": "dropped",
		"http://a.test/host": ""} {
		req := fetch.Request{Header: http.Header{"X-Old": {"c"}}}
		veto, err := h.Request(&item.Item{URL: url}, &req)
		if got := req.Header.Get("X-A"); err != nil || got+strings.TrimPrefix(veto, "filter "+p.Name()+": ") != want ||
			len(req.Header) != 1+len(got) {
			t.Errorf("%s: %v, %q (%v)", url, req.Header, veto, err)
		}
	}
	if c := p.Counts(); c.Nonsense != 2 || !strings.Contains(c.Trouble, "--resolve") {
		t.Errorf("a field that cannot be sent: %+v", c)
	}
}

func TestRecordsGetFields(t *testing.T) {
	p := scripted(t, `\"record\"],\"want\":[\"html\",\"header\"`, `case $line in
*secret*) echo "{\"id\":$id,\"drop\":\"secret\"}";; *Größe*) echo "{\"id\":$id,\"fields\":{\"a\": 1}}";; *) echo "{\"id\":$id}";; esac`)
	h := Hooks([]*filter.Pool{p})
	record := func(body string, noIndex bool) *page.Record {
		return &page.Record{URL: "http://a.test/", Time: time.Unix(0, 0), NoIndex: noIndex,
			Page:     &page.Page{Sniffed: "text/html", Charset: "windows-1252"},
			Response: &page.Response{Status: 200, Body: []byte(body), Header: http.Header{"Set-Cookie": {"secret"}}}}
	}
	for body, want := range map[string]string{"Gr\xf6\xdfe": `{"a":1}`, "x": "", "secret": "secret"} {
		for _, noIndex := range []bool{false, true} {
			rec := record(body, noIndex)
			got, err := h.Record(rec)
			got = strings.TrimPrefix(got, "filter "+p.Name()+": ")
			if len(rec.Fields) > 0 {
				got = string(rec.Fields[0].Values)
			}
			if noIndex && body != "secret" {
				want = ""
			}
			if err != nil || got != want {
				t.Errorf("%q, noindex %v: %q, want %q (%v)", body, noIndex, got, want, err)
			}
		}
	}
	if c := p.Counts(); c.Restarts() != 0 {
		t.Errorf("begun again: %+v", c)
	}
}

func TestAFilterReadsBodies(t *testing.T) {
	p := scripted(t, `\"record\"],\"want\":[\"body\"`, `case $line in
*body_file*) f=${line#*body_file\":\"}; f=${f%%\"*}; n=$(wc -c < $f); echo "{\"id\":$id,\"text\":\"$n bytes\"}";;
*e1xydGYxfQ==*) echo "{\"id\":$id,\"title\":\"T\",\"text\":\"A text\",\"links\":[\"b.rtf\",\"mailto:x@y\"]}";;
*) echo "{\"id\":$id}";; esac`)
	t.Setenv("TMPDIR", t.TempDir())
	record := func(body string) *page.Record {
		return &page.Record{URL: "http://a.test/d/a.rtf", Page: &page.Page{Sniffed: "application/rtf", Title: "old"},
			Response: &page.Response{Status: 200, Payload: []byte(body), Header: http.Header{}}}
	}
	h := Hooks([]*filter.Pool{p})
	rec := record(`{\rtf1}`)
	if veto, err := h.Record(rec); veto != "" || err != nil {
		t.Fatal(veto, err)
	}
	if rec.Page.Title != "T" || rec.Text == nil || rec.Text.Text != "A text" || len(rec.Page.Links) != 1 ||
		rec.Page.Links[0].URL != "http://a.test/d/b.rtf" {
		t.Errorf("%+v, %+v", rec.Page, rec.Text)
	}
	rec = record(strings.Repeat("x", maxInline+1))
	if _, err := h.Record(rec); err != nil || rec.Text == nil || rec.Text.Text != "262145 bytes" {
		t.Errorf("a long body: %+v, %v", rec.Text, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("files remain: %v, %v", left, err)
	}
	t.Setenv("TMPDIR", "/nonexistent")
	rec = record(strings.Repeat("x", maxInline+1))
	if veto, err := h.Record(rec); veto != "" || err != nil || rec.Text != nil {
		t.Errorf("without a folder for the body: %q, %v, %+v", veto, err, rec.Text)
	}
	if c := p.Counts(); c.Restarts() != 0 || c.Nonsense != 0 {
		t.Errorf("%+v", c)
	}
}
