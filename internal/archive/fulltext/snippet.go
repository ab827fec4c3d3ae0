package fulltext

import (
	"strings"
	"unicode/utf8"

	"kumo/internal/archive/fulltext/words"
)

// A Piece is a part of a snippet.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"` // a match of the query
}

const (
	snippetBytes  = 240
	snippetWord   = 24 // bytes at the end within which no word is cut
	snippetBefore = 60 // bytes before the first match
)

// snippet returns the part of a document's text that matches most parts of the query.
func (s *search) snippet(d *Doc) []Piece {
	wanted := map[string]int{} // maps terms to parts of the query
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

// A hit is a match of a part of the query in the text.
type hit struct{ from, to, part int }

// window returns the index of the first hit in the window that matches most parts of the query.
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

// pieces splits a part of a text at its hits. Adjacent hits are one piece.
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

// collapseSpace replaces each run of white space by one space.
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

// runeStart returns the offset of the character that contains an offset.
func runeStart(text string, at int) int {
	for back := 0; back < utf8.UTFMax && at > 0 && at < len(text) && !utf8.RuneStart(text[at]); back++ {
		at--
	}
	return at
}
