package wire

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/content/policy"
)

// tagged responds with a page and an X-Robots-Tag header.
func tagged(tag, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Robots-Tag", tag)
		html(body)(w, r)
	}
}

func TestDirectivesOfPages(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{
		"a.test/": html(`<a href=/meta>1</a> <a href=/header>2</a> <a href=/rel rel="external nofollow">3</a>
			<a href=/both rel=nofollow>4</a> <a href=/noarchive>5</a> <a href=/gone>6</a> <a href=/later>7</a>`),
		"a.test/meta": html(`<meta name=robots content="noindex, nofollow"><a href=/from-meta>1</a> <a href=/both>2</a>`),
		"a.test/header": tagged("otherbot: none, kumo: nofollow",
			`<a href=/from-header>1</a> <meta http-equiv=refresh content="0;url=/moved">`),
		"a.test/noarchive":   tagged("noarchive", `<a href=/both>seen here without nofollow</a>`),
		"a.test/gone":        html(`<meta name=kumo content="unavailable_after: 2001-01-01"><a href=/rel rel=ugc>no vote, but a link</a>`),
		"a.test/later":       html(`<meta name=robots content="unavailable_after: 2999-01-01">`),
		"a.test/from-meta":   html(`1`),
		"a.test/rel":         html(`2`),
		"a.test/moved":       html(`3`),
		"a.test/both":        html(`4`),
		"a.test/from-header": html(`5`),
	}
	everywhere := []string{"a.test/", "a.test/meta", "a.test/header", "a.test/noarchive", "a.test/gone", "a.test/later",
		"a.test/both",
		"a.test/rel", "a.test/moved"}
	for _, c := range []struct {
		ignore             string
		more               []string // additional requests if the directive is ignored
		noindex, noarchive string   // paths marked in the lists
	}{
		{"", nil, "/meta /gone", "/noarchive"},
		{"nofollow", []string{"a.test/from-meta", "a.test/from-header"}, "/meta /gone", "/noarchive"},
		{"noindex", nil, "/gone", "/noarchive"},
		{"unavailable-after", nil, "/meta", "/noarchive"},
		{"noarchive", nil, "/meta /gone", ""},
		{"all", []string{"a.test/from-meta", "a.test/from-header"}, "", ""},
	} {
		t.Run(c.ignore, func(t *testing.T) {
			s := newSite(t, pages)
			j := s.job(t, "a.test/")
			if c.ignore != "" {
				var err error
				if j.Crawl.Ignore, err = policy.ParseDirectives([]string{c.ignore}); err != nil {
					t.Fatal(err)
				}
			}
			mustRun(t, j)
			s.wantAsked(t, append(c.more, everywhere...)...)
			for _, l := range lines(t, j.Dir, "pages.jsonl") {
				path := strings.TrimPrefix(l["url"].(string), s.url("a.test"))
				path = "/" + strings.TrimPrefix(path, "/")
				if got, want := l["noindex"] == true, contains(c.noindex, path); got != want {
					t.Errorf("%s: noindex is %v", path, got)
				}
				if got, want := l["warc"] == nil, contains(c.noarchive, path); got != want || (l["noarchive"] == true) != want {
					t.Errorf("%s: not archived is %v: %v", path, got, l)
				}
			}
		})
	}
}

func contains(words, word string) bool { return strings.Contains(" "+words+" ", " "+word+" ") }

func TestRelNofollow(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{"a.test/": html(`<a href=/x rel=nofollow>1</a><img src=/i rel=nofollow>`),
		"a.test/x": html("x")}
	s := newSite(t, pages)
	j := s.job(t, "a.test/")
	mustRun(t, j)
	s.wantAsked(t, "a.test/")
	skipped := lines(t, j.Dir, "skipped.jsonl")
	if len(skipped) != 2 || skipped[0]["rule"] != "nofollow" && skipped[1]["rule"] != "nofollow" {
		t.Errorf("skipped: %v", skipped)
	}
	s = newSite(t, pages)
	j = s.job(t, "a.test/")
	j.Crawl.Ignore = policy.RelNoFollow
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/x")
}

// A noarchive page leaves nothing of its body in the folder.
func TestNoArchiveLeavesNothing(t *testing.T) {
	t.Parallel()
	const secret = "a sentence that must not be kept"
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": tagged("noarchive", secret+`<a href=/b>b</a>`),
		"a.test/b": tagged("noarchive", secret)})
	j := s.job(t, "a.test/")
	j.Text = func(resp *page.Response, _ *page.Page) (*page.MainText, error) {
		return &page.MainText{Text: string(resp.Body)}, nil
	}
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/b")
	everyByte(t, j.Dir, func(name string, data []byte) {
		if strings.Contains(string(data), secret) {
			t.Errorf("%s has it", name)
		}
	})
	log, err := os.ReadFile(filepath.Join(j.Dir, "crawl.log"))
	if err != nil || strings.Count(string(log), "noarchive") != 2 {
		t.Errorf("crawl.log: %s (%v)", log, err)
	}
}

// body responds with a body of a media type.
func body(mediaType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		io.WriteString(w, withPort(text, r))
	}
}

// Attributes of many links of a page are only stored once, and have a limited length.
func TestLongDirectivesOfManyLinks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprintf(&b, "<meta name=robots content='nofollow, %s'>", strings.Repeat("x", 900))
	for i := range 9000 {
		fmt.Fprintf(&b, "<a href=%d>", i)
	}
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html(b.String())})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	if n := len(lines(t, j.Dir, "skipped.jsonl")); n != 9000 {
		t.Errorf("%d lines", n)
	}
	if info, err := os.Stat(filepath.Join(j.Dir, "skipped.jsonl")); err != nil || info.Size() > 9000*500 {
		t.Errorf("%d bytes (%v)", info.Size(), err)
	}
}
