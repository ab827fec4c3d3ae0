package synthweb

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/unicode/norm"
)

// texts are sentences of the Universal Declaration of Human Rights, one a line.
//
//go:embed texts/*.txt
var texts embed.FS

// A script is a text in a charset.
type script struct{ text, charset string }

// A language is one that hosts can write, in each of its scripts.
type language struct {
	code    string
	scripts []script
}

// languages are those that a web can be in, each in UTF-8 and the charsets that sites wrote it in before. Where that
// was a font rather than a charset, there is only UTF-8.
var languages = []language{
	{"zh", []script{{"zh", "utf-8"}, {"zh", "gbk"}, {"zh-Hant", "big5"}, {"zh", "gb18030"}, {"zh-Hant", "utf-8"}}},
	{"en", []script{{"en", "utf-8"}, {"en", "windows-1252"}}},
	{"ja", []script{{"ja", "utf-8"}, {"ja", "shift_jis"}, {"ja", "euc-jp"}, {"ja", "iso-2022-jp"}}},
	{"ko", []script{{"ko", "utf-8"}, {"ko", "euc-kr"}}},
	{"ar", []script{{"ar", "utf-8"}, {"ar", "windows-1256"}, {"ar", "iso-8859-6"}}},
	{"de", []script{{"de", "utf-8"}, {"de", "windows-1252"}, {"de", "iso-8859-15"}}},
	{"fr", []script{{"fr", "utf-8"}, {"fr", "windows-1252"}, {"fr", "iso-8859-15"}}},
	{"id", []script{{"id", "utf-8"}, {"id", "windows-1252"}}},
	{"hi", []script{{"hi", "utf-8"}}},
	{"fa", []script{{"fa", "utf-8"}, {"fa", "windows-1256"}}},
	{"it", []script{{"it", "utf-8"}, {"it", "windows-1252"}}},
	{"ky", []script{{"ky", "utf-8"}}},
	{"kk", []script{{"kk", "utf-8"}}},
	{"lo", []script{{"lo", "utf-8"}}},
	{"my", []script{{"my", "utf-8"}}},
	{"mn", []script{{"mn", "utf-8"}}},
	{"ms", []script{{"ms", "utf-8"}, {"ms", "windows-1252"}}},
	{"ne", []script{{"ne", "utf-8"}}},
	{"ps", []script{{"ps", "utf-8"}}},
	{"fil", []script{{"fil", "utf-8"}, {"fil", "windows-1252"}}},
	{"pt", []script{{"pt", "utf-8"}, {"pt", "windows-1252"}}},
	{"ru", []script{{"ru", "utf-8"}, {"ru", "windows-1251"}, {"ru", "koi8-r"}}},
	{"es", []script{{"es", "utf-8"}, {"es", "windows-1252"}}},
	{"tg", []script{{"tg", "utf-8"}}},
	{"ur", []script{{"ur", "utf-8"}}},
	{"vi", []script{{"vi", "utf-8"}, {"vi", "windows-1258"}}},
	{"bo", []script{{"bo", "utf-8"}}},
}

// Languages are the codes of the languages that a web can be in.
func Languages() (codes []string) {
	for _, l := range languages {
		codes = append(codes, l.code)
	}
	return codes
}

// tongueOfHost gives host i of a web in languages its tongue: its language goes by its number, and its script, too, so that
// each language has all of its scripts where it has as many hosts.
func (c *Config) tongueOfHost(i int) *tongue {
	if len(c.Languages) == 0 {
		return universal()
	}
	code := c.Languages[i%len(c.Languages)]
	at := slices.IndexFunc(languages, func(l language) bool { return l.code == code })
	scripts := languages[at].scripts
	return tongueOf(code, scripts[i/len(c.Languages)%len(scripts)])
}

// foreignPerMille are how many pages in a thousand of a web in languages are in another language than their host, in UTF-8.
const foreignPerMille = 40

// tongue is what the page at r is written in.
func (w *Web) tongue(r Ref) *tongue {
	h := &w.hosts[r.Host]
	if len(w.cfg.Languages) < 2 || r.N == 0 {
		return h.tongue
	}
	if d := w.cfg.dice(r.Host, aboutTongue, r.N); d.Chance(foreignPerMille) {
		code := w.cfg.Languages[d.Below(len(w.cfg.Languages))]
		return tongueOf(code, script{code, "utf-8"})
	}
	return h.tongue
}

// A Writing is what a page is written in.
type TextProfile struct {
	Language, Charset string // as Config.Languages has it; WHATWG's name in lower case
	Declared          bool   // the page or its header names the charset
}

// TextProfile tells what the page at a URL is written in, whatever its port; false if there is no page of a language.
func (w *Web) TextProfile(rawURL string) (TextProfile, bool) {
	r, ok := w.refOf(rawURL)
	if !ok || w.hosts[r.Host].silent() || !w.alive(r) {
		return TextProfile{}, false
	}
	switch r.Kind {
	case Page, Refresh, Private, Script, Open, Flaky, Cut, Large, Copy, Session, Frame, Ghost:
	default:
		return TextProfile{}, false
	}
	r = r.shown()
	t := w.tongue(r)
	return TextProfile{t.language, strings.ToLower(t.charset), t.language == "" || declared(r.N)}, t.language != ""
}

// declared reports whether page n of a host in a language says its charset.
func declared(n uint32) bool { return n%5 != 4 }

var tongues sync.Map // of tongueKey → func() *tongue

type tongueKey struct {
	language string
	script
}

func tongueOf(code string, s script) *tongue {
	made, ok := tongues.Load(tongueKey{code, s})
	if !ok {
		made, _ = tongues.LoadOrStore(tongueKey{code, s}, sync.OnceValue(func() *tongue { return newLanguage(code, s) }))
	}
	return made.(func() *tongue)()
}

// newLanguage makes a tongue of a text. What a charset lacks is left out of it.
func newLanguage(code string, s script) *tongue {
	data, err := texts.ReadFile("texts/" + s.text + ".txt")
	if err != nil {
		panic("synthweb: " + err.Error()) // Languages and texts/ are written together
	}
	t := &tongue{charset: s.charset, language: code}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if b, ok := encode(line, s.charset); ok {
			t.sentences = append(t.sentences, b)
		}
		for _, word := range wordsOf(line) {
			b, ok := encode(word, s.charset)
			if !ok {
				continue
			}
			t.words = append(t.words, b)
			if _, taken := kindOfDir["/"+word+"/"]; !taken && strings.IndexFunc(word, notInWord) < 0 {
				t.paths = append(t.paths, pathWord{escaped: escape(word), raw: b})
			}
		}
	}
	if len(t.sentences) < 20 || len(t.words) < 100 || len(t.paths) < 32 {
		panic(fmt.Sprintf("synthweb: %s lacks most of what %s is written in", s.charset, s.text))
	}
	return t
}

// notInWord is true of what ends a word, and of what servers and clients might write in other ways.
func notInWord(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) }

const maxWordLength = 12 // characters of a word; scripts without spaces are cut into such

func wordsOf(line string) (words []string) {
	for _, word := range strings.FieldsFunc(line, notInWord) {
		for word != "" {
			head := word
			if utf8.RuneCountInString(word) > maxWordLength {
				head = cutWord(word)
			}
			words, word = append(words, head), word[len(head):]
		}
	}
	return words
}

// cutWord is the beginning of a long word, without the marks of what follows.
func cutWord(word string) string {
	n := 0
	for i, r := range word {
		if n++; n > maxWordLength/3 && !unicode.Is(unicode.M, r) {
			return word[:i]
		}
	}
	return word
}

// encode writes a text in a charset, in the ways of those who used it.
func encode(text, charset string) ([]byte, bool) {
	if charset == "utf-8" {
		return []byte(text), true
	}
	e, err := htmlindex.Get(charset)
	if err != nil {
		panic("synthweb: " + err.Error())
	}
	b, err := e.NewEncoder().Bytes([]byte(withoutLaterChars(text, charset)))
	if err == nil && charset == "iso-2022-jp" {
		b = append(b, "\x1b(B"...) // back to ASCII, where markup is
	}
	return b, err == nil
}

// withoutLaterChars writes a text without the characters that a charset never had, for which others were used.
func withoutLaterChars(text, charset string) string {
	switch charset {
	case "windows-1256", "iso-8859-6":
		return strings.NewReplacer("\u06CC", "\u064A", "\u06C0", "\u0647").Replace(text) // Persian letters: Arabic ones
	case "iso-8859-15":
		return strings.NewReplacer("’", "'", "“", `"`, "”", `"`, "–", "-").Replace(text)
	case "windows-1258":
		return splitTones(text)
	}
	return text
}

// splitTones puts the five tones of Vietnamese, which windows-1258 has as characters of their own, behind their letters.
func splitTones(text string) string {
	var b strings.Builder
	for _, r := range text {
		letter, tone := "", ""
		for _, part := range norm.NFD.String(string(r)) {
			if strings.ContainsRune("\u0300\u0301\u0303\u0309\u0323", part) {
				tone += string(part)
			} else {
				letter += string(part)
			}
		}
		b.WriteString(norm.NFC.String(letter) + tone)
	}
	return b.String()
}
