package parse

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"kumo/internal/page"
)

func leadOf(body string) string {
	p := New(Config{})
	p.text.open(utf8Charset, utf8Charset, []byte(body))
	return string(p.lead([]byte(body), false))
}

func TestLead(t *testing.T) {
	const long = "A sentence that is long enough to count as one."
	for _, c := range []struct{ name, body, want string }{
		{"sentences only", "<nav><a href=x>Home</a></nav><p>" + strings.Repeat(long+" ", 5) + "</p><script>var no = 'a long text that nobody sees'</script>",
			strings.Repeat(long+" ", 5)},
		{"few words", "<ul><li>Eins<li>Zwei</ul><!-- a comment that is long enough to count --><p>" + long, long + "  Eins Zwei "},
		{"references", "<p>K&auml;se &amp; Brot, und noch ein paar W&#246;rter mehr", "Käse & Brot, und noch ein paar Wörter mehr  "},
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
	p.text.open(cs, cs, []byte(body))
	if got := string(p.lead([]byte(body), false)); strings.TrimSpace(got) != text {
		t.Errorf("%q", got)
	}
}

func TestLanguage(t *testing.T) {
	for _, c := range []struct{ contentType, body, want string }{
		{"text/html", "<title>Start</title><nav>Home About Contact</nav><p>Die Bibliothek schließt jeden Abend um neun Uhr, nur sonntags nicht.", "de"},
		{"text/html; charset=koi8-r", koi8(t, "<p>Библиотека закрывается каждый вечер в девять часов, кроме воскресенья."), "ru"},
		{"text/plain", "La bibliothèque ferme à neuf heures, sauf les jours fériés.", "fr"},
		{"text/html", "<p>Biblioteket stänger klockan nio varje kväll, utom på söndagar.", "other"},
		{"text/html", "<p>404", ""},
		{"text/html", "<!doctype html>\n<html xml:lang=en class='lang=x' data-lang=y lang = \"pt-BR\"><p>404", "pt"},
		{"text/html", "<html lang=en><p>" + strings.Repeat("Die Bibliothek schließt jeden Abend um neun. ", 3), "de"},
		{"text/html", "<html lang", ""},
		{"image/png", "\x89PNG\r\n\x1a\nThe library closes at nine every evening, but not on Sundays.", ""},
	} {
		resp := &page.Response{URL: "http://h.test/", Status: 200, Body: []byte(c.body), Header: http.Header{"Content-Type": {c.contentType}}}
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
