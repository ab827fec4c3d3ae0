package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

func TestInflectedFormsAreOneWord(t *testing.T) {
	s := &Splitter{}
	for _, c := range []struct{ lang, text, query string }{
		{"de", "Die alten Häuser stehen leer", "Hause"}, {"de", "Straßen und STRASSE", "straße"},
		{"en", "Crawlers were running", "crawler runs"}, {"fr", "les élèves continueront", "élève continuer"},
		{"ru", "новые книги о городах", "книга город"}, {"es", "las bibliotecas públicas", "biblioteca"},
		{"it", "le biblioteche pubbliche", "biblioteca"}, {"pt", "as bibliotecas", "biblioteca"},
		{"ar", "الكتب والمكتبات", "الكتب"},
		{"fr", "l'homme à la café", "homme cafe"}, {"vi", "Tiếng Việt", "tieng viet"}, {"", "Éa DON'T", "ea don't"},
		{"fa", "كتاب\u200cها", "کتاب\u200cها"}, {"ru", "Ещё ёлка", "еще елка"},
		{"el", "ΟΔΟΣ και οδός Σάμος", "οδος ΣΑΜΟΣ οδόσ"},
	} {
		has := map[string]bool{}
		s.Split(c.text, c.lang, func(w Word) bool { has[w.Term] = true; return true })
		for _, w := range s.Query(c.query, c.lang) {
			if !has[w.Term] {
				t.Errorf("%s: %q is not found by %q, which is %q: %v", c.lang, c.text, c.query, w.Term, has)
			}
		}
	}
}

// Any part of a text without spaces is a sequence of the text's words.
func TestTextWithoutSpaces(t *testing.T) {
	s := &Splitter{}
	for _, text := range []string{"東京都に住んでいます", "全文检索的索引", "한국어검색", "ພາສາລາວ", "မြန်မာဘာသာ", "ภาษาไทย", "データー"} {
		var all []string
		s.Split(text, "", func(w Word) bool { all = append(all, w.Term); return true })
		runes := []rune(text)
		for from := range runes {
			for to := from + 1; to <= len(runes); to++ {
				part := string(runes[from:to])
				s.run(text, 0)
				marks := map[int]bool{}
				for _, m := range s.marks {
					marks[m] = true
				}
				if at := len(string(runes[:from])); !marks[at] || !marks[at+len(part)] {
					continue // starts with a combining mark
				}
				query := s.Query(part, "")
				found := false
				for at := range all {
					row := at+len(query) <= len(all)
					for i, w := range query {
						row = row && (all[at+i] == w.Term || w.Prefix && strings.HasPrefix(all[at+i], w.Term))
					}
					found = found || row
				}
				if len(query) == 0 || !found {
					t.Errorf("%s is not found in %s: %v, %v", part, text, query, all)
				}
			}
		}
	}
}

// found reports whether a text contains the words of a query in sequence.
func found(text, query string) bool {
	s := &Splitter{}
	var all []string
	s.Split(text, "", func(w Word) bool { all = append(all, w.Term); return true })
	row := s.Query(query, "")
	for at := range len(all) - len(row) + 1 {
		is := true
		for i, w := range row {
			is = is && (all[at+i] == w.Term || w.Prefix && strings.HasPrefix(all[at+i], w.Term))
		}
		if is && len(row) > 0 {
			return true
		}
	}
	return false
}

// Words next to or between letters without spaces are found with them.
func TestMixedText(t *testing.T) {
	const text = "昨日、東京2020の日本語Wikipediaに、東京、大阪と한국어 검색은 있다。B京"
	for query, want := range map[string]bool{"東京2020": true, "日本語Wikipedia": true, "東京、大阪": true, "한국어 검색": true,
		"2020の": true, "京2020の日": true, "語Wikipediaに、東": true, "東京、大": true, "京、大": true, "B京": true, "東2020": false,
		"日本Wikipedia": false, "東京、阪": false, "한국 검색": false, "東、大阪": false} {
		if found(text, query) != want {
			t.Errorf("%s: found %v", query, !want)
		}
	}
}

// Composed and decomposed, halfwidth and fullwidth letters are equal.
func TestPartsOfLetters(t *testing.T) {
	for _, text := range []string{"ガラスのびんが割れた", "データーベース", "한국어검색엔진", "Pokémon ガ", "Ёжик й"} {
		for _, same := range []string{norm.NFD.String(text), norm.NFKD.String(text), width.Narrow.String(text)} {
			if !found(same, text) || !found(text, same) {
				t.Errorf("%q and %q are not the same", text, same)
			}
		}
		runes := []rune(text)
		for from := range runes[:len(runes)-1] {
			part := string(runes[from : from+2])
			if isUnspaced(runes[from]) && isUnspaced(runes[from+1]) && !found(norm.NFD.String(text), part) {
				t.Errorf("%q is not found in the parts of %q", part, text)
			}
		}
	}
	if found("かく", norm.NFD.String("が")) || found(norm.NFD.String("がく"), "か") {
		t.Error("か is が")
	}
}

// Omitted words are never needed ones.
func TestUnwantedWords(t *testing.T) {
	for lang, text := range map[string]string{"ru": "йога Йод ёлка Ель Яна", "de": "Äpfel Öl eitel", "en": "Éclair zoo",
		"el": "Σάμος"} {
		for _, text := range []string{text, norm.NFD.String(text)} {
			all := &Splitter{}
			all.Split(text, lang, func(w Word) bool {
				first, _ := utf8.DecodeRuneInString(w.Term)
				some, has := &Splitter{Only: map[rune]bool{first: true}}, false
				some.Split(text, lang, func(o Word) bool { has = has || o == w; return true })
				if !has {
					t.Errorf("%s: %q is left out", text, text[w.From:w.To])
				}
				return true
			})
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("Häuser \xff 東京\u0301 l'été", "de")
	f.Add("I\u0307stanbul ﬁx \u00adx", "tr")
	f.Fuzz(func(t *testing.T, text, lang string) {
		s, last := &Splitter{}, 0
		s.Split(text, lang, func(w Word) bool {
			if w.Term == "" || len(w.Term) > MaxWord || w.From < last || w.To <= w.From || w.To > len(text) {
				t.Errorf("%q: %+v behind %d", text, w, last)
			}
			if utf8.ValidString(text) && !utf8.ValidString(w.Term) {
				t.Errorf("%q: %q", text, w.Term)
			}
			last = w.From
			return true
		})
		s.Query(text, lang)
	})
}
