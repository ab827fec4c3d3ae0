package parse

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"kumo/internal/base/page"
)

func leadOf(body string) string {
	p := New(Config{})
	p.text.init(utf8Charset, utf8Charset, []byte(body))
	return p.leadIn([]byte(body))
}

func (p *Parser) leadIn(body []byte) string {
	p.scan.reset(body, false)
	p.first.reset(&p.text)
	for p.scan.lead = &p.first; p.scan.next(); {
	}
	return string(p.lead())
}

func TestLead(t *testing.T) {
	const long = "A sentence that is long enough to count as one."
	for _, c := range []struct{ name, body, want string }{
		{"sentences only", "<nav><a href=x>Home</a></nav><p>" + strings.Repeat(long+" ", 5) +
			"</p><script>var no = 'a long text that nobody sees'</script>",
			strings.Repeat(long+" ", 5)},
		{"few words", "<ul><li>Eins<li>Zwei</ul><!-- a comment that is long enough to count --><p>" + long,
			long + "  Eins Zwei "},
		{"references", "<p>K&auml;se &amp; Brot, und noch ein paar W&#246;rter mehr",
			"Käse & Brot, und noch ein paar Wörter mehr  "},
		{"no end", "<p", " "},
	} {
		if got := leadOf(c.body); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if n := len(leadOf(strings.Repeat("<p>"+long, 1000))); n < maxLead || n > maxLead+100 {
		t.Errorf("%d bytes", n)
	}
}

// leadAlone computes the lead of the beginning of a document in another way.
func (p *Parser) leadAlone(src []byte) string {
	var sentences []byte
	rest := bytes.Clone(p.title)
	s := scanner{src: src[:min(len(src), leadWindow)]}
	for i := 0; len(sentences) < maxLead; {
		tag := index(s.src, i, '<')
		text := bytes.TrimSpace(s.src[i:tag])
		if len(text) >= minSentence {
			sentences = append(append(sentences, p.text.cut(text, maxLead)...), ' ')
		} else if len(text) > 0 && len(rest) < maxLead {
			rest = append(append(rest, text...), ' ')
		}
		if tag+1 >= len(s.src) {
			break
		}
		i, _ = s.construct(tag + 1)
	}
	if len(sentences) < minText {
		sentences = append(append(sentences, ' '), rest...)
	}
	p.text.reset()
	return string(p.text.attr(cut(sentences, maxLead+minSentence)))
}

// The text collected while a whole document is scanned equals that of its beginning alone, wherever that is cut off.
func TestLeadGathered(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"<b>", "</b>", "<!--", "-->", "<script>", "</script>", "<style>", "</style>", "<title>", "</title>",
		"<svg>", "</svg>",
		"<![CDATA[", "]]>", "<a href='x'>", "<p class=\"", "\"", "'", ">", "<", "</", " ", "\n", "word", "käse", "語", "&amp;",
		"\x00", "\xff",
		"some words more than ten", "a sentence which has more than thirty-two bytes", "<textarea>", "</textarea>", "<br/>",
		"<form>", "</form>"}
	p := New(Config{Language: true})
	for range 4000 {
		var body []byte
		if random.IntN(2) == 0 {
			body = append(body, []string{"<i>", "<!--x-->", "<p>ab "}[random.IntN(3)]...)
			body = bytes.Repeat(body, (leadWindow-random.IntN(300))/len(body))
		}
		for range random.IntN(100) {
			body = append(body, parts[random.IntN(len(parts))]...)
		}
		p.title = bytes.Repeat([]byte("t"), random.IntN(3)*random.IntN(600))
		p.text.init(utf8Charset, utf8Charset, body)
		if got, want := p.leadIn(body), p.leadAlone(body); got != want {
			t.Fatalf("seed %d: the lead of %q is %q, want %q", seed, body[max(0, len(body)-2000):], got, want)
		}
	}
}

func TestLeadOfLegacyPages(t *testing.T) {
	const text = "Библиотека закрывается каждый вечер в девять часов, кроме воскресенья."
	body, err := charmap.Windows1251.NewEncoder().String("<meta charset=windows-1251><p>" + text)
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{})
	cs, ok := lookup([]byte("windows-1251"))
	if !ok {
		t.Fatal("no windows-1251")
	}
	p.text.init(cs, cs, []byte(body))
	if got := p.leadIn([]byte(body)); strings.TrimSpace(got) != text {
		t.Errorf("%q", got)
	}
}

func TestLanguage(t *testing.T) {
	for _, c := range []struct{ contentType, body, want string }{
		{"text/html", "<title>Start</title><nav>Home About Contact</nav><p>Die Bibliothek schließt jeden Abend um neun " +
			"Uhr, nur sonntags nicht.", "de"},
		{"text/html; charset=koi8-r", koi8(t, "<p>Библиотека закрывается каждый вечер в девять часов, кроме воскресенья."),
			"ru"},
		{"text/plain", "La bibliothèque ferme à neuf heures, sauf les jours fériés.", "fr"},
		{"text/html", "<p>Biblioteket stänger klockan nio varje kväll, utom på söndagar.", "other"},
		{"text/html", "<p>404", ""},
		{"text/html", "<!doctype html>\n<html xml:lang=en class='lang=x' data-lang=y lang = \"pt-BR\"><p>404", "pt"},
		{"text/html", "<html lang=en><p>" + strings.Repeat("Die Bibliothek schließt jeden Abend um neun. ", 3), "de"},
		{"text/html", "<html lang", ""},
		{"image/png", "\x89PNG\r\n\x1a\nThe library closes at nine every evening, but not on Sundays.", ""},
	} {
		resp := &page.Response{URL: "http://h.test/", Status: 200, Body: []byte(c.body),
			Header: http.Header{"Content-Type": {c.contentType}}}
		var pg page.Page
		if err := New(Config{Language: true}).Parse(resp, &pg); err != nil || pg.Lang != c.want {
			t.Errorf("%.60s: %q, want %q (%v)", c.body, pg.Lang, c.want, err)
		}
	}
}

func koi8(t *testing.T, text string) string {
	t.Helper()
	out, err := charmap.KOI8R.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
