package synthweb

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

func babel(day int) *Web {
	return New(Config{Seed: 3, Hosts: 5 * len(Languages()), Pages: 2000, Languages: Languages(), Day: day,
		MedianSize: 3 << 10, MeanLinks: 8, Kinds: map[Kind]int{Copy: 50, Hop: 40}})
}

func pageAt(t *testing.T, w *Web, url string) Answer {
	t.Helper()
	a, err := w.Page(url)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Each page is encoded in the charset of its profile: it can be decoded, and contains some of the language's text.
func TestAWebSpeaksAllLanguages(t *testing.T) {
	w := babel(0)
	seen := map[string]map[string]int{}
	undeclared, guests := 0, 0
	for url := range w.Truth(TruthOptions{}).All(80) {
		wr, ok := w.TextProfile(url)
		if !ok {
			continue
		}
		a := pageAt(t, w, url)
		if seen[wr.Language] == nil {
			seen[wr.Language] = map[string]int{}
		}
		seen[wr.Language][wr.Charset]++
		e, err := htmlindex.Get(wr.Charset)
		if err != nil {
			t.Fatal(err)
		}
		text, err := e.NewDecoder().Bytes(a.Body)
		if err != nil || bytes.ContainsRune(text, '\uFFFD') {
			t.Errorf("%s is not in %s: %v", url, wr.Charset, err)
		}
		head := a.Header.Get("Content-Type") + string(a.Body[:bytes.Index(a.Body, []byte("<title"))])
		said := strings.Contains(strings.ReplaceAll(head, `"`, ""), "charset="+wr.Charset)
		if said != wr.Declared {
			t.Errorf("%s declares %s: %v, but says %q", url, wr.Charset, wr.Declared, head)
		}
		if !wr.Declared {
			undeclared++
		}
		host, _ := w.refOf(url)
		if w.hosts[host.Host].tongue.language != wr.Language {
			guests++
		}
	}
	for _, l := range languages {
		if len(seen[l.code]) == 0 {
			t.Errorf("no page is in %s", l.code)
		}
		for _, s := range l.scripts {
			if seen[l.code][s.charset] == 0 {
				t.Errorf("no page is in %s and %s: %v", l.code, s.charset, seen[l.code])
			}
		}
	}
	if undeclared < 100 || guests < 20 {
		t.Errorf("%d pages do not declare their charset, %d are in another language than their host", undeclared, guests)
	}
}

func TestFromDayToDayPagesChangeComeAndGo(t *testing.T) {
	type state struct {
		status int
		body   string
		etag   string
		mod    string
	}
	var days [3]map[string]state
	for i := range days {
		w := babel(i + 1)
		days[i] = map[string]state{}
		for url := range w.Truth(TruthOptions{}).All(80) {
			a := pageAt(t, w, url)
			days[i][url] = state{a.Status, string(a.Body), a.Header.Get("ETag"), a.Header.Get("Last-Modified")}
			if a.Status == http.StatusNotFound {
				t.Errorf("day %d leads to %s, which is not there", i+1, url)
			}
		}
	}
	for i := 1; i < len(days); i++ {
		w := babel(i + 1)
		var fresh, gone, changed, same int
		for url, now := range days[i] {
			was, known := days[i-1][url]
			switch {
			case !known:
				fresh++
			case now.body != was.body:
				changed++
				if now.status == http.StatusOK && now.etag == was.etag && now.mod == was.mod {
					t.Errorf("%s has changed, and says %s %s on both days", url, now.etag, now.mod)
				}
			default:
				same++
			}
		}
		for url := range days[i-1] {
			if _, there := days[i][url]; there {
				continue
			}
			gone++
			if a := pageAt(t, w, url); a.Status != http.StatusNotFound && a.Status/100 != 3 {
				t.Errorf("%s is not reached on day %d, and answers %d", url, i+1, a.Status)
			}
		}
		t.Logf("day %d: %d new, %d gone, %d changed, %d as before", i+1, fresh, gone, changed, same)
		if fresh == 0 || gone == 0 || changed == 0 || same < changed/2 {
			t.Errorf("day %d: %d new, %d gone, %d changed, %d as before", i+1, fresh, gone, changed, same)
		}
	}
	if !maps.Equal(days[0], func() map[string]state {
		again := map[string]state{}
		w := babel(1)
		for url := range w.Truth(TruthOptions{}).All(80) {
			a := pageAt(t, w, url)
			again[url] = state{a.Status, string(a.Body), a.Header.Get("ETag"), a.Header.Get("Last-Modified")}
		}
		return again
	}()) {
		t.Error("day 1 is not the same twice")
	}
}

func TestAWebOfDaysAnswersConditions(t *testing.T) {
	w := babel(2)
	s, err := Serve(t.Context(), w, ServeOptions{Addresses: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 {
		t.Run(fmt.Sprint("host ", i), func(t *testing.T) {
			ask := func(fields map[string]string) *http.Response {
				url := fmt.Sprintf("http://127.0.0.1:%d/", s.Port())
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = w.Host(i)
				for name, value := range fields {
					req.Header.Set(name, value)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				return resp
			}
			first := ask(nil)
			etag, modified := first.Header.Get("ETag"), first.Header.Get("Last-Modified")
			if first.StatusCode != http.StatusOK || etag == "" && modified == "" {
				t.Fatalf("%d %q %q", first.StatusCode, etag, modified)
			}
			same, other := map[string]string{}, map[string]string{}
			if etag != "" {
				same["If-None-Match"], other["If-None-Match"] = etag, `"x"`
			}
			if modified != "" {
				same["If-Modified-Since"], other["If-Modified-Since"] = modified, "Thu, 01 Jan 1998 00:00:00 GMT"
			}
			if again := ask(same); again.StatusCode != http.StatusNotModified || again.ContentLength > 0 {
				t.Errorf("the same: %d, %d bytes", again.StatusCode, again.ContentLength)
			}
			if again := ask(other); again.StatusCode != http.StatusOK {
				t.Errorf("another version: %d", again.StatusCode)
			}
		})
	}
}

func TestLanguagesAreThoseOfTheTexts(t *testing.T) {
	var files []string
	entries, err := texts.ReadDir("texts")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files = append(files, strings.TrimSuffix(e.Name(), ".txt"))
	}
	slices.Sort(files)
	used := map[string]bool{}
	for _, l := range languages {
		for _, s := range l.scripts {
			used[s.text] = true
			sentences := newLanguage(l.code, s).sentences
			if len(sentences) < 50 {
				t.Errorf("%s in %s has %d sentences", l.code, s.charset, len(sentences))
			}
		}
	}
	if want := slices.Sorted(maps.Keys(used)); !slices.Equal(files, want) {
		t.Errorf("texts of %v, used are %v", files, want)
	}
}
