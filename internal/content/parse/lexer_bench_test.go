package parse

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"time"

	tdewolff "github.com/tdewolff/parse/v2"
	lexer "github.com/tdewolff/parse/v2/html"
	"golang.org/x/net/html"

	"kumo/internal/base/page"
)

// BenchmarkBesideLexer runs tdewolff's lexer and the parser in turn, some milliseconds each, so that other load affects
// both equally. It reports the medians: the speed of each, and the ratio to the lexer. "lexer" ignores its tokens,
// "lexer-links" finds references in them; "references" finds them without resolving, "parse" is the whole parser.
func BenchmarkBesideLexer(b *testing.B) {
	for _, bp := range benchPages {
		b.Run(bp.name, func(b *testing.B) {
			resp := &page.Response{URL: testURL, Status: 200, Body: bp.body, Header: http.Header{"Content-Type": {"text/html"}}}
			references, links, pg := New(Config{}), New(Config{}), new(page.Page)
			references.onReference = func([]byte) {}
			runners := []struct {
				name string
				run  func()
			}{
				{"lexer", func() { lex(bp.body) }},
				{"lexer-links", func() { lexLinks(bp.body) }},
				{"references", func() { _ = references.Parse(resp, pg) }},
				{"parse", func() { _ = links.Parse(resp, pg) }},
			}
			times := make([][]float64, len(runners))
			for b.Loop() {
				for i, r := range runners {
					times[i] = append(times[i], perRun(r.run))
				}
			}
			bare := median(times[0])
			for i, r := range runners {
				b.ReportMetric(float64(len(bp.body))/median(times[i])/1e6, r.name+"-MB/s")
				b.ReportMetric(bare/median(times[i]), r.name+"-ratio")
			}
		})
	}
}

// perRun returns the seconds of one of a hundred runs.
func perRun(run func()) float64 {
	const runs = 100
	start := time.Now()
	for range runs {
		run()
	}
	return time.Since(start).Seconds() / runs
}

func median(times []float64) float64 {
	slices.Sort(times)
	return times[len(times)/2]
}

// lex iterates over a page's tokens and ignores them.
func lex(body []byte) {
	l := lexer.NewLexer(tdewolff.NewInputBytes(body))
	for {
		if kind, _ := l.Next(); kind == lexer.ErrorToken {
			return
		}
	}
}

// lexLinks finds references in the tokens.
func lexLinks(body []byte) (bytes int) {
	l := lexer.NewLexer(tdewolff.NewInputBytes(body))
	for {
		switch kind, _ := l.Next(); kind {
		case lexer.ErrorToken:
			return bytes
		case lexer.AttributeToken:
			if key := l.AttrKey(); string(key) == "href" || string(key) == "src" {
				bytes += len(unquoted(l.AttrVal()))
			}
		}
	}
}

func unquoted(value []byte) []byte {
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') {
		value = value[1 : n-1]
	}
	if bytes.IndexByte(value, '&') >= 0 {
		value = []byte(html.UnescapeString(string(value)))
	}
	return value
}
