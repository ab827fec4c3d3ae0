package fulltext

import (
	"strings"
	"unicode/utf8"

	"kumo/internal/archive/fulltext/words"
)

// A Piece is a part of what stands around words that were found.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"` // it was looked for
}

const (
	snippetBytes  = 240
	snippetWord   = 24 // at its end, of which no part is shown
	snippetBefore = 60 // of which stand before the first word
)

// snippet is the part of a document's text with most of the words that are looked for.
func (s *search) snippet(d *Doc) []Piece {
	wanted := map[string]int{} // by word, which part of the query wants it
	var begins []words.Word
	for i, a := range s.clauses {
		if a.not || a.text == "" {
			continue
		}
		for _, row := range a.rows {
			for _, w := range row {
				if wanted[w.Term] = i; w.Prefix {
					begins = append(begins, w)
				}
			}
		}
	}
	var hits []hit
	of := func(term string) (int, bool) {
		if i, has := wanted[term]; has {
			return i, true
		}
		for _, w := range begins {
			if strings.HasPrefix(term, w.Term) {
				return wanted[w.Term], true
			}
		}
		return 0, false
	}
	s.splitter.Only = map[rune]bool{}
	for term := range wanted {
		first, _ := utf8.DecodeRuneInString(term)
		s.splitter.Only[first] = true
	}
	n := 0
	text := d.Text
	s.splitter.Split(text, langOf(d.Lang), func(w words.Word) bool {
		if i, is := of(w.Term); is {
			hits = append(hits, hit{w.From, w.To, i})
		}
		n++
		return n < maxTokens && len(hits) < 10000
	})
	if len(hits) == 0 {
		if text = strings.TrimSpace(text); text == "" {
			text = d.About
		}
		return pieces(text, 0, min(len(text), snippetBytes), nil)
	}
	at := window(hits)
	from := runeStart(text, max(0, hits[at].from-snippetBefore))
	if space := strings.IndexAny(text[from:hits[at].from], " \n\t"); from > 0 && space >= 0 {
		from += space + 1
	}
	end := runeStart(text, min(len(text), max(from+snippetBytes, hits[at].to)))
	if space := strings.LastIndexAny(text[:end], " \n\t"); end < len(text) && space > end-snippetWord &&
		space >= hits[at].to {
		end = space
	}
	return pieces(text, from, end, hits[at:])
}

// A hit is where a word stands, and the part of the query that wants it.
type hit struct{ from, to, part int }

// window is the hit at which a snippet begins best: with which most parts of the query are in it.
func window(hits []hit) (at int) {
	most, end := 0, 0
	in := map[int]int{}
	for i := range hits {
		for ; end < len(hits) && hits[end].to <= hits[i].from+snippetBytes-snippetBefore; end++ {
			in[hits[end].part]++
		}
		if len(in) > most {
			most, at = len(in), i
		}
		if end > i {
			if in[hits[i].part]--; in[hits[i].part] == 0 {
				delete(in, hits[i].part)
			}
		} else {
			end = i + 1
		}
	}
	return at
}

// pieces cuts a part of a text where words that were found begin and end. Those that touch are one.
func pieces(text string, from, to int, hits []hit) (all []Piece) {
	to = runeStart(text, to)
	add := func(s string, match bool) {
		if s = collapseSpace(s); s != "" {
			all = append(all, Piece{s, match})
		}
	}
	if from > 0 {
		add("… ", false)
	}
	at := from
	for i := 0; i < len(hits); i++ {
		begin, end := hits[i].from, hits[i].to
		for ; i+1 < len(hits) && hits[i+1].from <= end; i++ {
			end = max(end, hits[i+1].to)
		}
		if end > to {
			break
		}
		add(text[at:begin], false)
		add(text[begin:end], true)
		at = end
	}
	add(text[at:to], false)
	if to < len(text) {
		add(" …", false)
	}
	return all
}

// collapseSpace makes one space of each row of what is none to be seen.
func collapseSpace(s string) string {
	var b strings.Builder
	space := false
	for _, c := range s {
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(c)
	}
	if space {
		b.WriteByte(' ')
	}
	return b.String()
}

// runeStart is where the character at a place begins.
func runeStart(text string, at int) int {
	for back := 0; back < utf8.UTFMax && at > 0 && at < len(text) && !utf8.RuneStart(text[at]); back++ {
		at--
	}
	return at
}
