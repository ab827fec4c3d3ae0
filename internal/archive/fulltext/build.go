package fulltext

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kumo/internal/archive/fulltext/words"
	"kumo/internal/base/item"
	"kumo/internal/base/varint"
)

// A termPostings collects the postings of a term in a batch.
type termPostings struct {
	wordWriter
	doc    int // current document
	at     []uint32
	inHead bool
}

// A builder collects the terms of a batch.
type builder struct {
	splitter *words.Splitter
	terms    map[string]*termPostings
}

// build writes a segment with documents.
func (x *Index) build(name string, docs []Doc) (info segmentInfo, err error) {
	w, err := newSegmentWriter(x.disk, x.dir, name)
	if err != nil {
		return info, err
	}
	if err := x.fill(w, docs); err != nil {
		w.drop()
		return info, err
	}
	return w.close()
}

// fill writes documents and their terms.
func (x *Index) fill(w *segmentWriter, docs []Doc) error {
	b := builder{&x.words, map[string]*termPostings{}}
	var buf varint.Writer
	for i := range docs {
		d := &docs[i]
		n := b.add(i, d)
		buf = appendDoc(buf[:0], d)
		if err := w.addDoc(buf, hashOf(d.URL), unix(d.Time), lengthByte(n), n); err != nil {
			return err
		}
	}
	if err := w.endBlock(); err != nil {
		return err
	}
	for _, term := range slices.Sorted(maps.Keys(b.terms)) {
		g := b.terms[term]
		g.finish()
		w.begin(term)
		w.word = g.wordWriter
		if err := w.end(); err != nil {
			return err
		}
	}
	return nil
}

// lengthByte encodes a number of words approximately, on a logarithmic scale.
func lengthByte(n int) byte { return byte(math.Round(math.Log2(float64(n)+1) * 12)) } // below 2^21

func lengthOf(b byte) float64 { return math.Exp2(float64(b)/12) - 1 }

// add adds a document's words, and returns their number.
func (b *builder) add(doc int, d *Doc) int {
	lang := langOf(d.Lang)
	at, n := uint32(0), 0
	field := func(text string, head bool) {
		b.splitter.Split(text, lang, func(w words.Word) bool {
			b.token(doc, w.Term, at, head)
			at++
			n++
			return n < maxTokens
		})
		at += fieldGap
	}
	field(d.Title, true)
	field(d.About, true)
	field(urlWords(d.URL), false)
	field(d.Text, false)
	for _, term := range filterTerms(d) {
		b.token(doc, term, 0, false)
	}
	return n
}

func (b *builder) token(doc int, term string, at uint32, head bool) {
	g := b.terms[term]
	if g == nil {
		g = &termPostings{doc: doc, wordWriter: wordWriter{last: -1}}
		b.terms[strings.Clone(term)] = g
	}
	if g.doc != doc {
		g.finish()
		g.doc = doc
	}
	g.at = append(g.at, at)
	g.inHead = g.inHead || head
}

// finish completes the current document.
func (g *termPostings) finish() {
	g.add(g.doc, g.inHead, g.at)
	g.at, g.inHead = g.at[:0], false
}

// urlWords returns the readable part of a URL: all after the scheme, without percent-encoding.
func urlWords(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	if plain, err := url.PathUnescape(rest); err == nil && utf8.ValidString(plain) {
		return plain
	}
	return rest
}

// Terms for filters begin with a byte that no word contains.
const (
	byHost   = "\x01h"
	byLang   = "\x01l"
	byStatus = "\x01s"
	byType   = "\x01t"
	byDay    = "\x01d"
)

// filterTerms returns the terms by which filters find a document.
func filterTerms(d *Doc) (all []string) {
	for host := item.HostOf(d.URL); host != ""; {
		all = append(all, byHost+host)
		if bare, port, has := strings.Cut(host, ":"); has && strings.Trim(port, "0123456789") == "" {
			all = append(all, byHost+bare)
		}
		_, host, _ = strings.Cut(host, ".")
	}
	if lang := strings.ToLower(d.Lang); lang != "" {
		all = append(all, byLang+lang)
		if short := langOf(lang); short != lang {
			all = append(all, byLang+short)
		}
	}
	status := strconv.Itoa(d.Status)
	all = append(all, byStatus+status, byStatus+status[:1]+"xx")
	kind, _, _ := strings.Cut(strings.ToLower(d.Type), ";")
	if kind = strings.TrimSpace(kind); kind != "" {
		all = append(all, byType+kind)
		if main, _, has := strings.Cut(kind, "/"); has {
			all = append(all, byType+main)
		}
	}
	day := d.Time.UTC().Format("2006-01-02")
	all = append(all, byDay+day, byDay+day[:7], byDay+day[:4])
	all = slices.DeleteFunc(all, func(term string) bool { return len(term) > maxTerm })
	slices.Sort(all)
	return slices.Compact(all)
}
