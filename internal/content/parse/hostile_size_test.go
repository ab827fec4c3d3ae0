package parse

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/cputime"
	"kumo/internal/base/page"
	"kumo/internal/lab/testmain"
)

// Large input takes time proportional to its size, and bounded memory. The test allows ten times as long for four times
// the size; quadratic time would be sixteen times as long.
func TestHostileSizes(t *testing.T) {
	testmain.Slow(t)
	for name, c := range map[string]struct {
		before, unit string
		times        int
	}{
		"nesting":              {"", "<div>", million},
		"nested svg":           {"", "<svg><desc>", million},
		"attribute of 50 MB":   {"<a href='", strings.Repeat("x", 50), million},
		"name of 50 MB":        {"<a ", strings.Repeat("x", 50), million},
		"tag of 50 MB":         {"<", strings.Repeat("x", 50), million},
		"comment of 50 MB":     {"<!--", strings.Repeat("->", 25), million},
		"title of 50 MB":       {"<title>", strings.Repeat("</titl ", 7), million},
		"links":                {"", "<a href=%d>", million},
		"equal links":          {"", "<a href=x rel=y>", million},
		"attributes":           {"<a ", "a%d=b ", million},
		"attributes twice":     {"<a ", "href=%d ", million},
		"candidates":           {"<img srcset='", "%d 1x, ", million},
		"candidates in pieces": {"", "<img srcset='%d 1x, x 2x'>", million / 4},
		"urls in a style":      {"<style>", "a{b:url(%d)}", million},
		"JSON-LD, nested":      {"<script type=application/ld+json>", `{"image":[`, million},
		"JSON-LD, urls":        {"<script type=application/ld+json>[", `"http://h.test/%d",`, million},
		"srcdocs":              {"", "<iframe srcdoc='<a href=%d>'></iframe>", million / 4},
		"entities":             {"<a href='", "&amp;&#x41;&notit;", million},
		"entities in pieces":   {"", "<a href='&amp;&#x41;&notit;&CounterClockwiseContourIntegral;'>", million / 4},
		"entities in a title":  {"<title>", "&amp;&#x41;&notit;", million},
		"forms":                {"", "<form action=%d></form>", million / 2},
		"late charset":         {strings.Repeat("<a href=x>", million), "<meta charset=gbk>", 4},
		"late base":            {strings.Repeat("<a href=x>", million), "<base href=%d>", 4},
	} {
		t.Run(name, func(t *testing.T) {
			small, large := hostilePage(c.before, c.unit, c.times/4), hostilePage(c.before, c.unit, c.times)
			before, _ := readingCost(t, small)
			took, room := readingCost(t, large)
			after, _ := readingCost(t, small) // with shared caches, other processes slow this one down
			if took > 10*max(before, after, 50*time.Millisecond) {
				t.Errorf("a quarter of it takes %v and %v, all of it %v", before, after, took)
			}
			if bound := uint64(64<<20 + 2*len(large)); room > bound {
				t.Errorf("%d bytes took %d of memory", len(large), room)
			}
		})
	}
}

func hostilePage(before, unit string, times int) []byte {
	var b strings.Builder
	b.WriteString(before)
	if !strings.Contains(unit, "%d") {
		b.WriteString(strings.Repeat(unit, times))
	}
	pieces := strings.Split(unit, "%d")
	for i := 0; i < times && len(pieces) == 2; i++ {
		b.WriteString(pieces[0])
		b.WriteString(strconv.Itoa(i))
		b.WriteString(pieces[1])
	}
	return []byte(b.String())
}

// readingCost returns the cost of reading a page: processor time, and all memory that was allocated.
func readingCost(t *testing.T, body []byte) (took time.Duration, room uint64) {
	t.Helper()
	resp := &page.Response{URL: testURL, Status: 200, Body: body, Header: http.Header{"Content-Type": {"text/html"}}}
	p, pg := New(Config{AnchorText: true}), new(page.Page)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var err error
	took = cputime.Of(func() { err = p.Parse(resp, pg) })
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if len(pg.Links) > 100_000 || len(pg.Title) > 1<<10 {
		t.Errorf("%d links, a title of %d bytes", len(pg.Links), len(pg.Title))
	}
	return took, after.TotalAlloc - before.TotalAlloc
}
