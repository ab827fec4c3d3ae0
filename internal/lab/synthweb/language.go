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

// A script is a text and a charset.
type script struct{ text, charset string }

// A language has one or more scripts in which hosts can write it.
type language struct {
	code    string
	scripts []script
}

// languages lists the languages of webs, each in UTF-8 and the charsets that sites used before. If sites used fonts
// instead of charsets, there is only UTF-8.
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

// Languages returns the codes of the languages that a web can use.
func Languages() (codes []string) {
	for _, l := range languages {
		codes = append(codes, l.code)
	}
	return codes
}

// tongueOfHost returns the tongue of host i in a web with languages. Language and script depend on its number, so that
// each language occurs in all of its scripts if it has enough hosts.
func (c *Config) tongueOfHost(i int) *tongue {
	if len(c.Languages) == 0 {
		return universal()
	}
	code := c.Languages[i%len(c.Languages)]
	at := slices.IndexFunc(languages, func(l language) bool { return l.code == code })
	scripts := languages[at].scripts
	return tongueOf(code, scripts[i/len(c.Languages)%len(scripts)])
}

// foreignPerMille is the number of pages per 1,000 that are in another language than their host, in UTF-8.
const foreignPerMille = 40

// tongue returns the tongue of the page at r.
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

// A TextProfile has the language and charset of a page.
type TextProfile struct {
	Language, Charset string // language as in Config.Languages; charset as in the WHATWG standard, lower case
	Declared          bool   // the page or its header declares the charset
}

// TextProfile returns the language and charset of the page at a URL, ignoring the port; false if it is not a page in a
// language.
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

// declared reports whether page n of a host in a language declares its charset.
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

// newLanguage makes a tongue of a text. It omits text that the charset cannot represent.
func newLanguage(code string, s script) *tongue {
	data, err := texts.ReadFile("texts/" + s.text + ".txt")
	if err != nil {
		panic("synthweb: " + err.Error()) // a bug: Languages lists only languages in texts/
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
		panic(fmt.Sprintf("synthweb: charset %s cannot represent most of %s", s.charset, s.text))
	}
	return t
}

// notInWord returns true for characters that end a word, and for those that servers and clients might encode
// differently.
func notInWord(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) }

const maxWordLength = 12 // characters of a word; text in scripts without spaces is cut into such words

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

// cutWord returns the first characters of a long word, without combining marks of the next character.
func cutWord(word string) string {
	n := 0
	for i, r := range word {
		if n++; n > maxWordLength/3 && !unicode.Is(unicode.M, r) {
			return word[:i]
		}
	}
	return word
}

// encode encodes a text in a charset, using the conventions of its former users.
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
		b = append(b, "\x1b(B"...) // back to ASCII for the markup
	}
	return b, err == nil
}

// withoutLaterChars replaces characters that a charset never had with those used instead.
func withoutLaterChars(text, charset string) string {
	switch charset {
	case "windows-1256", "iso-8859-6":
		// Persian letters: Arabic letters were used
		return strings.NewReplacer("\u06CC", "\u064A", "\u06C0", "\u0647").Replace(text)
	case "iso-8859-15":
		return strings.NewReplacer("’", "'", "“", `"`, "”", `"`, "–", "-").Replace(text)
	case "windows-1258":
		return splitTones(text)
	}
	return text
}

// splitTones moves the five tone marks of Vietnamese behind their letters, because windows-1258 has them as separate
// characters.
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
