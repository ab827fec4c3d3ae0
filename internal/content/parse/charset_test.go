package parse

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"kumo/internal/base/page"
)

// testdata is the directory of the conformance data.
func testdata(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	return dir
}

// encode converts text to a charset.
func encode(t testing.TB, label, text string) string {
	t.Helper()
	enc, err := htmlindex.Get(label)
	if err != nil {
		t.Fatal(err)
	}
	out, err := enc.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func parseAs(t *testing.T, contentType, body string) *page.Page {
	t.Helper()
	return parseResponse(t, &page.Response{URL: testURL, Status: 200, Body: []byte(body),
		Header: http.Header{"Content-Type": {contentType}}})
}

// The suite's results are those of a browser with the default windows-1252. Here, plain ASCII is UTF-8.
func TestHTML5Lib(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata(t), "charset", "html5lib", "*.dat"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range bytes.Split(data, []byte("#data\n"))[1:] {
			body, want, _ := bytes.Cut(c, []byte("\n#encoding\n"))
			name, _, _ := strings.Cut(string(want), "\n")
			name = strings.ToLower(name)
			got := parseAs(t, "text/html", string(body)).Charset
			if _, declared := prescan(body); got == "utf-8" && !declared && bytes.IndexFunc(body,
				func(r rune) bool { return r > '~' }) < 0 {
				got = "windows-1252"
			}
			if got != name {
				t.Errorf("%s: %.300s\n got %s, want %s", filepath.Base(file), body, got, name)
			}
		}
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct{ name, contentType, body, want string }{
		{"byte order mark before all", "text/html; charset=koi8-r", "\xEF\xBB\xBF<meta charset=gbk>", "utf-8"},
		{"UTF-16 by byte order mark", "text/html", "\xFF\xFE<\x00p\x00", "utf-16le"},
		{"the field before meta", `text/html; Charset="KOI8-R"`, "<meta charset=gbk>", "koi8-r"},
		{"an unknown field", "text/html; charset=none", "<meta charset=gbk>", "gbk"},
		{"UTF-16 in a meta is a lie", "text/html", "<meta charset=utf-16>", "utf-8"},
		{"x-user-defined", "text/html", "<meta charset=x-user-defined>", "windows-1252"},
		{"an XML declaration", "text/html", "<?xml version='1.0' encoding = 'euc-jp'?><p>", "euc-jp"},
		{"meta before an XML declaration", "text/html", "<?xml encoding='euc-jp'?><meta charset=gbk>", "gbk"},
		{"UTF-16 XML", "text/html", "\x00<\x00?\x00x", "utf-16be"},
		{"valid UTF-8", "text/html", "<p>é", "utf-8"},
		{"valid UTF-8, cut off", "text/html", "<p>é\xE2\x82", "utf-8"},
		{"not UTF-8", "text/html", "<p>\xE9 ", "windows-1252"},
		{"a late meta", "text/html", strings.Repeat(" ", 2000) + "\xE9<meta charset=iso-8859-5>", "iso-8859-5"},
		{"a late meta in a comment", "text/html", strings.Repeat(" ", 2000) + "\xE9<!--<meta charset=iso-8859-5>-->",
			"windows-1252"},
		{"the first late meta", "text/html", strings.Repeat(" ", 2000) + "<meta charset=x><meta charset=gbk><meta " +
			"charset=big5>", "gbk"},
	} {
		if got := parseAs(t, c.contentType, c.body).Charset; got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDetectCharset(t *testing.T) {
	russian := encode(t, "koi8-r", "<p>Привет, мир! Это страница, которая о своей кодировке ничего не говорит.</p>")
	for _, c := range []struct{ name, contentType, body, want, how string }{
		{"mark", "text/html; charset=gbk", "\xEF\xBB\xBF", "utf-8", "bom"},
		{"mark of UTF-32", "", "\xFF\xFE\x00\x00<\x00\x00\x00", "utf-32le", "bom"},
		{"header", "text/html; charset=latin1", "<meta charset=gbk>", "windows-1252", "header"},
		{"meta", "text/html", "<meta charset=gb2312>", "gbk", "meta"},
		{"detected", "text/html", russian, "koi8-r", "detected"},
		{"UTF-8", "", "é", "utf-8", "detected"},
		{"ASCII", "", "<p>", "utf-8", "default"},
		{"too little", "", "<p>\xE9", "windows-1252", "default"},
		{"nothing", "", "", "utf-8", "default"},
	} {
		got := DetectCharset([]byte(c.body), c.contentType)
		if got.Name != c.want || got.How != c.how || got.Confidence < 0 || got.Confidence > 1 ||
			(c.how == "default") != (got.Confidence == 0) {
			t.Errorf("%s: got %v, want %s by %s", c.name, got, c.want, c.how)
		}
	}
	pg := parseAs(t, "text/html", "<title>"+russian[3:len(russian)-4]+"</title><a href='?"+encode(t, "koi8-r", "мир")+"'>")
	if !strings.HasPrefix(pg.Title, "Привет, мир!") || links(pg) != "a /d/p.html?%CD%C9%D2" ||
		pg.CharsetSource != "detected" {
		t.Errorf("%s, %s, %s", pg.Title, links(pg), pg.CharsetSource)
	}
	wide := encode(t, "utf-16be", "<title>широкий</title><a href=1>")
	if pg := parseAs(t, "text/html", wide); pg.Title != "широкий" || links(pg) != "a /d/1" {
		t.Errorf("%s, %s in %s", pg.Title, links(pg), pg.Charset)
	}
}

// In every charset, the same page has the same links and title, except for the bytes in queries. In some charsets, the
// characters contain bytes such as "\", "<", "A" or "&".
func TestLegacyCharsets(t *testing.T) {
	for _, c := range []struct{ label, word, query string }{
		{"utf-8", "表ソ十", "%E8%A1%A8%E3%82%BD%E5%8D%81"},
		{"utf-16le", "表ソ十㰼㸾≦", "%E8%A1%A8%E3%82%BD%E5%8D%81%E3%B0%BC%E3%B8%BE%E2%89%A6"},
		{"utf-16be", "表ソ十㰼㸾", "%E8%A1%A8%E3%82%BD%E5%8D%81%E3%B0%BC%E3%B8%BE"},
		{"shift_jis", "表ソ十", "%95%5C%83%5C%8F%5C"},
		{"iso-2022-jp", "室松次釈Ａ", "%1B$B%3C%3C%3E%3E%3C!%3Ca%23A%1B(B"},
		{"euc-jp", "表ソ十", "%C9%BD%A5%BD%BD%BD"},
		{"gb18030", "表€㐂", "%B1%ED%A2%E3%819%EF1"},
		{"big5", "功許蓋", "%A5%5C%B3%5C%BB%5C"},
		{"euc-kr", "한글", "%C7%D1%B1%DB"},
		{"windows-1251", "ёж", "%B8%E6"},
		{"koi8-r", "ёж", "%A3%D6"},
		{"windows-1250", "łęž", "%B3%EA%9E"},
		{"windows-1252", "é€", "%E9%80"},
		{"windows-1256", "پژ", "%81%8E"},
		{"windows-1258", "ươđ", "%FD%F5%F0"},
		{"windows-874", "ไทย", "%E4%B7%C2"},
		{"iso-8859-2", "łęž", "%B3%EA%BE"},
		{"iso-8859-5", "ёж", "%F1%D6"},
		{"iso-8859-6", "عرب", "%D9%D1%C8"},
		{"iso-8859-15", "é€", "%E9%A4"},
	} {
		t.Run(c.label, func(t *testing.T) {
			markup := `<title>` + c.word + `&amp;&#233;</title><p title="` + c.word + `>"><a href="/` + c.word + `#` + c.word +
				`">` + c.word +
				`</a><a href=/q?a=` + c.word + `&amp;b>`
			pg := parseAs(t, "text/html; charset="+c.label, encode(t, c.label, markup))
			if pg.Title != c.word+"&é" || pg.Charset != c.label {
				t.Errorf("title %q in %s", pg.Title, pg.Charset)
			}
			if len(pg.Links) != 2 {
				t.Fatalf("links %s", links(pg))
			}
			whole := parseAs(t, "text/html; charset=utf-8", `<a href="/`+c.word+`">`)
			if got, want := pg.Links[0].URL, whole.Links[0].URL; got != want {
				t.Errorf("path: got %s, want %s", got, want)
			}
			query := parseAs(t, "text/html", `<a href="/q?a=`+c.query+`&b">`)
			if got, want := pg.Links[1].URL, query.Links[0].URL; got != want {
				t.Errorf("query: got %s, want %s", got, want)
			}
		})
	}
}

// TestUTF8 converts each body with the charset that the parser detected.
func TestUTF8(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"meta", "<meta charset=shift_jis><p>" + encode(t, "shift_jis", "日本語"), "<meta charset=shift_jis><p>日本語"},
		{"late meta", "<!--" + strings.Repeat("x", 2000) + "--><meta charset=koi8-r><p>" + encode(t, "koi8-r", "привет"),
			"привет"},
		{"mark, against meta", "\xEF\xBB\xBF<meta charset=koi8-r><p>привет", "<meta charset=koi8-r><p>привет"},
		{"UTF-16", "\xFF\xFE" + encode(t, "utf-16le", "<p>привет"), "<p>привет"},
		{"not in the standard", "<p>" + strings.Repeat("\x1B$)C\x0E0!Dz\x0F ", 9), "<p>"},
		{"nothing wrong", "<p>word", "<p>word"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pg := parseAs(t, "text/html", tt.body)
			got := string(UTF8([]byte(tt.body), pg.Charset))
			if !strings.HasSuffix(got, tt.want) && !strings.HasPrefix(got, tt.want) {
				t.Errorf("charset %s: got %q, want %q", pg.Charset, got, tt.want)
			}
		})
	}
}

func TestUnencodableQuery(t *testing.T) {
	pg := parseAs(t, "text/html; charset=koi8-r", "<a href='/?a=&#x20AC;\xD6\xD6&euro;b#&euro;'>")
	if got, want := links(pg), "a /?a=%26%238364%3B%D6%D6%26%238364%3Bb"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A charset that is used only for attacks yields an empty text.
func TestReplacement(t *testing.T) {
	if pg := parseAs(t, "text/html; charset=hz-gb-2312", "<a href=1>"); pg.Charset != "replacement" || len(pg.Links) != 0 {
		t.Errorf("got %s, %s", pg.Charset, links(pg))
	}
}

// Late declarations apply to earlier links: the charset to the base URL, and both to the links.
func TestBeginAgain(t *testing.T) {
	fill := strings.Repeat(" ", 2000)
	pg := parse(t, "<a href='\xD6'>"+fill+"<base href='/\xD6/'><a href=2>"+fill+"<meta charset=koi8-r>")
	if got, want := links(pg), "a /%D0%B6/%D0%B6, a /%D0%B6/2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFlawedUTF8(t *testing.T) {
	pg := parseAs(t, "text/html; charset=utf-8", "<title>a\xE9b</title><a href='/\xE2\x82x\xE9'>")
	if pg.Title != "a\uFFFDb" || links(pg) != "a /%EF%BF%BDx%EF%BF%BD" {
		t.Errorf("got %q, %s", pg.Title, links(pg))
	}
}

// The declared language decides between charsets of a short page, unless it is English, which templates declare.
func TestCharsetOfDeclaredLanguage(t *testing.T) {
	const text = "Mūsų mokykla šiandien dirba iki pietų"
	coded, err := charmap.Windows1257.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	for attr, want := range map[string]string{` lang="lt-LT"`: "windows-1257", " class=x lang=lt": "windows-1257"} {
		if got := DetectCharset([]byte("<!DOCTYPE html><html"+attr+"><p>"+coded), "").Name; got != want {
			t.Errorf("%s: got %s, want %s", attr, got, want)
		}
	}
	for _, html := range []string{`<html lang=en-US>`, `<html>`, `<p lang=lt>`, `<html lang="">`, "<html lang"} {
		if got := declaredLang([]byte(html)); got != "" {
			t.Errorf("%s: got %q", html, got)
		}
	}
}
