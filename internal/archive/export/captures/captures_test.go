package captures_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/base/page"
)

type visit = exporttest.Visit

func open(t *testing.T, dir string) *captures.Archive {
	t.Helper()
	a, err := captures.Open(t.Context(), captures.Config{Dir: dir, Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// told returns each capture with its body.
func told(t *testing.T, a *captures.Archive) (all []string) {
	t.Helper()
	err := a.Each(t.Context(), func(c *captures.Capture) error {
		resp, err := a.ReadResponse(c)
		if err != nil {
			return err
		}
		all = append(all, strings.Join([]string{strings.TrimPrefix(c.URL, "http://a.test/"), strconv.Itoa(c.Status), c.Type,
			resp.Header.Get("X-Is"), string(resp.Truncated), string(resp.Body)}, " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const css = "Content-Type: text/css\r\n"

func TestTheNewestGoodAnswerCounts(t *testing.T) {
	c := exporttest.Crawl(t,
		visit{URL: "http://a.test/z", Body: "z1"}, visit{URL: "http://a.test/a", Body: "a1", Header: css},
		visit{URL: "http://a.test/z", Body: "z2", Header: css + "X-Is: new\r\n"}, visit{URL: "http://a.test/z", Status: 500,
			Body: "no"},
		visit{URL: "http://a.test/z", Status: 429, Body: "no"}, visit{URL: "http://a.test/b", Status: 503, Body: "never was"},
		visit{URL: "http://a.test/a", Status: 410, Body: "gone"},
		visit{URL: "http://a.test/cut", Body: "cut", Truncated: page.Length})
	want := []string{"a 410 text/html   gone", "cut 200 text/html  length cut", "z 200 text/css new  z2"}
	a := open(t, c.Dir)
	if got := told(t, a); !slices.Equal(got, want) || a.Len() != 3 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := told(t, a); !slices.Equal(got, want) { // it can be repeated
		t.Errorf("again %q", got)
	}
}

func TestRevisits(t *testing.T) {
	const chunks = "Content-Type: text/css\r\nTransfer-Encoding: chunked\r\n"
	c := exporttest.Crawl(t,
		visit{URL: "http://a.test/m", Body: "same", Header: css},
		visit{URL: "http://a.test/b", Body: "same", SameAs: 1, Header: css + "X-Is: own\r\n"},
		visit{URL: "http://a.test/m", Body: "other"},
		visit{URL: "http://a.test/m", Status: 304, SameAs: 3},
		visit{URL: "http://a.test/n", Body: "4\r\nword\r\n0\r\n\r\n", Header: chunks},
		visit{URL: "http://a.test/n", Status: 304, SameAs: 5})
	want := []string{"b 200 text/css own  same", "m 200 text/html   other", "n 200 text/css   word"}
	if got := told(t, open(t, c.Dir)); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	if _, err := captures.Open(t.Context(), captures.Config{Dir: t.TempDir()}); !errors.Is(err, captures.ErrNoRecords) {
		t.Error(err)
	}
	c := exporttest.Crawl(t, visit{URL: "http://a.test/"})
	if err := os.Rename(c.Path(c.CDXJ), filepath.Join(t.TempDir(), "x")); err != nil {
		t.Fatal(err)
	}
	_, err := captures.Open(t.Context(), captures.Config{Dir: c.Dir})
	if err == nil || !strings.Contains(err.Error(), "has no index") || !strings.Contains(err.Error(), c.CDXJ) {
		t.Error(err)
	}

	// The record with the body is missing.
	c = exporttest.Crawl(t, visit{URL: "http://a.test/1", Body: "x"}, visit{URL: "http://a.test/2", Body: "x", SameAs: 1})
	lines := strings.SplitAfter(c.Text(c.CDXJ), "\n")
	c.Put(c.CDXJ, strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.Contains(l, "/1 ") || strings.Contains(l, `/1"`)
	}), ""))
	a := open(t, c.Dir)
	if got := told(t, a); len(got) != 0 || a.MissingBodies() != 1 {
		t.Errorf("%q, %d lost", got, a.MissingBodies())
	}
}

// If an index names a wrong file or offset, the error names the record.
func TestWrongPlaces(t *testing.T) {
	c := exporttest.Crawl(t, visit{URL: "http://a.test/1", Body: "x"})
	line := c.Text(c.CDXJ)
	for old, with := range map[string]string{`"offset":"`: `"offset":"9`, `"filename":"`: `"filename":"../../etc/`} {
		c.Put(c.CDXJ, strings.Replace(line, old, with, 1))
		a := open(t, c.Dir)
		err := a.Each(t.Context(), func(c *captures.Capture) error { _, err := a.ReadResponse(c); return err })
		if _, is := errors.AsType[*captures.RecordError](err); !is {
			t.Errorf("%s: %v", with, err)
		}
	}
}
