package feed

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"kumo/internal/base/cputime"
	"kumo/internal/base/weburl"
)

const testURL = "http://h.test/d/list"

// read formats the entries of a list, those of its own host by their path.
func read(t *testing.T, list string, cfg Config) (entries string, err error) {
	t.Helper()
	var out []string
	for e, e2 := range Read(strings.NewReader(list), testURL, cfg) {
		if e2 != nil {
			err = e2
			continue
		}
		s := e.Kind.String() + " " + strings.TrimPrefix(e.URL, "http://h.test")
		if e.Lang != "" {
			s += " " + e.Lang
		}
		if e.Priority != defaultPriority {
			s += fmt.Sprint(" ", e.Priority)
		}
		if !e.Modified.IsZero() {
			s += " " + e.Modified.Format("2006-01-02T15:04:05")
		}
		out = append(out, s)
	}
	return strings.Join(out, ", "), err
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, list, want string }{
		{"sitemap", `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
 <url><loc> http://h.test/a?b=1&amp;c=2 </loc><lastmod>2024-01-02T03:04:05+01:00</lastmod><priority>0.8</priority></url>
 <url><lastmod>2024-01-02</lastmod><loc><![CDATA[http://h.test/c?a=1&b]]></loc></url>
 <url><loc>/d</loc><priority>9</priority><lastmod>soon</lastmod></url>
 <url><loc></loc></url><url><loc>javascript:no</loc></url>
</urlset>`, "listed /a?b=1&c=2 0.8 2024-01-02T02:04:05, listed /c?a=1&b 2024-01-02T00:00:00, listed /d"},
		{"sitemap with all that there is", `<urlset xmlns:x="y"><x:url><image:image><image:loc>/i.png</image:loc></image:image><x:loc>/a</x:loc>` +
			`<xhtml:link rel="alternate" hreflang="de" href="/de"/><video:video><video:thumbnail_loc>/t.png</video:thumbnail_loc>` +
			`<video:content_loc>/v.mp4</video:content_loc></video:video></x:url><url><loc>/b</loc></url></urlset>`,
			"img /i.png, listed /a, listed /de de, img /t.png, media /v.mp4, listed /b"},
		{"index", `<!-- x --> <sitemapindex><sitemap><loc>http://h.test/1.xml.gz</loc><lastmod>2024-05</lastmod></sitemap>` +
			`<sitemap><loc>/2.xml</loc></sitemap></sitemapindex>`, "sitemap /1.xml.gz 2024-05-01T00:00:00, sitemap /2.xml"},
		{"plain text", "\xEF\xBB\xBF\nhttp://h.test/a\r\n  https://other.test/b \nno\n\nHTTP://h.test/c" +
			strings.Repeat("x", 9999) + "\nhttp://h.test/d",
			"listed /a, listed https://other.test/b, listed /d"},
		{"RSS", `<!DOCTYPE rss [<!ENTITY no "<item>">]><rss version="2.0"><channel><title>x</title><link>http://h.test/</link>
<atom:link rel="self" href="/rss"/><atom:link rel="hub" href="http://hub.test/"/>
<item><title>1 &lt; 2</title><link>http://h.test/1</link><guid>http://h.test/no</guid><pubDate>Tue, 02 Jan 2024 03:04:05 +0000</pubDate></item>
<item><guid isPermaLink="true">http://h.test/2</guid><enclosure url="/2.mp3" length="1" type="audio/mpeg"/></item>
<item><guid>http://h.test/3</guid><description>&lt;a href="no"></description></item>
<item><guid isPermaLink="false">http://h.test/no</guid><media:content url="/4.jpg" medium="image"/><dc:date>2024-02-03</dc:date></item>
</channel></rss>`, "feed /, feed /rss, feed /1 2024-01-02T03:04:05, media /2.mp3, feed /3, img /4.jpg " +
			"2024-02-03T00:00:00"},
		{"RSS 1.0", `<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel><link>/</link></channel><item rdf:about="x"><link>/1</link></item></rdf:RDF>`,
			"feed /, feed /1"},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://h.test/b/"><link href="x"/><logo>l.png</logo>
<entry xml:base="c/"><link rel="alternate" hreflang='en' href="1"/><link rel='enclosure' type='video/mp4' href='1.mp4'/>
<id>urn:no</id><updated>2024-01-02T03:04:05Z</updated><content src="2"/></entry>
<entry><link href="3"/></entry></feed>`,
			"feed /b/x, img /b/l.png, feed /b/c/1 en 2024-01-02T03:04:05, media /b/c/1.mp4 2024-01-02T03:04:05, feed /b/c/2 " +
				"2024-01-02T03:04:05, feed /b/3"},
		{"JSON feed", `{"version":"https://jsonfeed.org/version/1.1","home_page_url":"/","author":{"url":"no"},"next_url":"/next","items":[
{"id":"1","url":"/1","tags":["url","no"],"image":"/i.png","date_published":"2024-01-02T03:04:05Z","n":[1,{"url":"no"}],
"attachments":[{"url":"/1.mp3","mime_type":"audio/mpeg"},{"url":"/2.mp3"}]},{"external_url":"http://other.test/","id":null}]}`,
			"feed /, feed /next, feed /1 2024-01-02T03:04:05, img /i.png 2024-01-02T03:04:05, media /1.mp3 " +
				"2024-01-02T03:04:05, media /2.mp3 2024-01-02T03:04:05, feed http://other.test/"},
		{"broken XML", `<urlset><url><loc>/a</url><url><LOC>/up</LOC><loc>/b</loc><url><loc>/c < d</loc><priority>0.2`,
			"listed /up, listed /b, listed /c%20%3C%20d"},
		{"nothing", " \n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := read(t, c.list, Config{}); got != c.want || err != nil {
				t.Errorf("%s\n got %s (%v)\nwant %s", c.list, got, err, c.want)
			}
		})
	}
}

func TestCharset(t *testing.T) {
	const list = "<urlset><url><loc>http://h.test/é</loc></url></urlset>"
	latin, err := charmap.ISO8859_1.NewEncoder().String(list)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String("<?xml version='1.0' " +
		"encoding='UTF-16'?>" + list)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{list, "<?xml version='1.0' encoding='ISO-8859-1'?>" + latin, wide,
		"<?xml encoding='bogus'?>" + list} {
		if got, err := read(t, body, Config{}); got != "listed /%C3%A9" || err != nil {
			t.Errorf("%q: got %s, %v", body, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for list, want := range map[string]error{
		"<html><a href=x>": ErrFormat, "no list": ErrFormat, `{"items":[{"url":"/a"}]}`: ErrFormat, "{}": ErrFormat,
		`{"a":` + strings.Repeat("[", 200): errDepth, "\x1F\x8B\x08no": io.ErrUnexpectedEOF,
	} {
		if got, err := read(t, list, Config{}); got != "" || !errors.Is(err, want) {
			t.Errorf("%.40s: got %q, %v", list, got, err)
		}
	}
	for _, err := range Read(strings.NewReader("<urlset>"), "/relative", Config{}) {
		if !errors.Is(err, weburl.ErrRelative) {
			t.Error(err)
		}
	}
}

func packed(t testing.TB, list string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, list); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPacked(t *testing.T) {
	list := "<urlset>" + strings.Repeat("<url><loc>http://h.test/a</loc></url>", 1000)
	whole := packed(t, list)
	got, err := read(t, whole, Config{})
	if strings.Count(got, "/a") != 1000 || err != nil {
		t.Errorf("%d entries, %v", strings.Count(got, "/a"), err)
	}
	got, err = read(t, whole[:len(whole)-9], Config{})
	if strings.Count(got, "/a") < 900 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %d entries, %v", strings.Count(got, "/a"), err)
	}
}

// Hostile lists: all must end soon and need little memory.
func TestHostile(t *testing.T) {
	const size = 512 << 10
	for name, c := range map[string]struct{ before, unit string }{
		"one text":         {"<urlset><url><loc>", "x"},
		"one attribute":    {"<rss><item><link href='", "&amp;"},
		"attributes":       {"<rss><item><link ", "a='b' "},
		"one name":         {"<urlset><", "x"},
		"names":            {"<urlset>", "<x%d>"},
		"links of a url":   {"<urlset><url>", "<loc>/%d</loc>"},
		"a million urls":   {"<urlset>", "<url><loc>/%d</loc>"},
		"deep elements":    {"<feed>", "<entry>"},
		"comments":         {"", "<!---->"},
		"one comment":      {"<!--", "-"},
		"document type":    {"<!DOCTYPE x [", "<!ENTITY x '&x;&x;'>"},
		"one line":         {"http://h.test/", "x"},
		"lines":            {"", "http://h.test/%d\n"},
		"JSON keys":        {`{"version":"https://jsonfeed.org/version/1"`, `,"x%d":1`},
		"JSON attachments": {`{"version":"https://jsonfeed.org/version/1","items":[{"attachments":[`, `{"url":"/%d"},`},
		"JSON string":      {`{"version":"`, "x"},
		"bases":            {"<feed>", "<entry xml:base='a/'>"},
	} {
		t.Run(name, func(t *testing.T) {
			var list strings.Builder
			list.WriteString(c.before)
			for i := 0; list.Len() < size; i++ {
				list.WriteString(strings.ReplaceAll(c.unit, "%d", fmt.Sprint(i)))
			}
			n := 0
			took := cputime.Of(func() {
				for range Read(strings.NewReader(list.String()), testURL, Config{}) {
					n++
				}
			})
			if took > 10*time.Second {
				t.Errorf("%d entries, took %v", n, took)
			}
		})
	}
}

// A bomb ends at the limit; a list of exactly the limit's size is read.
func TestLimit(t *testing.T) {
	bomb := packed(t, "<urlset>"+strings.Repeat("<url><loc>/a</loc></url>", 1<<20))
	got, err := read(t, bomb, Config{MaxBytes: 1 << 16})
	if n := strings.Count(got, "/a"); n < 2000 || n > 3000 || !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d entries, %v", n, err)
	}
	const list = "<urlset><url><loc>/a</loc></url></urlset>"
	if got, err := read(t, list, Config{MaxBytes: int64(len(list))}); got != "listed /a" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := read(t, list, Config{MaxBytes: int64(len(list)) - 1}); got != "listed /a" ||
		!errors.Is(err, ErrTooLarge) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestStop(t *testing.T) {
	n := 0
	for range Read(strings.NewReader("<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url>"), testURL, Config{}) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"<urlset><url><loc>/a</loc><priority>1</priority>",
		"<rss><item><link>x</link><guid>http://h/</guid>",
		"<feed xml:base='x'><entry><link href='a&amp;b'/></entry>",
		`{"version":"https://jsonfeed.org/version/1","items":[{"url":"/"}]}`,
		"http://h.test/\n", "<!DOCTYPE x [<!ENTITY>]><!--x--><![CDATA[]]]>", "\xFE\xFF\x00<",
		packed(f, "<urlset><url><loc>x</loc>")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		for e, err := range Read(bytes.NewReader(list), testURL, Config{MaxBytes: 1 << 20}) {
			if err != nil {
				continue
			}
			if u, err := weburl.Parse(e.URL); err != nil || u.Canonical().String() != e.URL || e.Priority < 0 || e.Priority > 1 {
				t.Errorf("%+v: %v", e, err)
			}
		}
	})
}

func BenchmarkSitemap(b *testing.B) {
	list := "<urlset>" + strings.Repeat("<url><loc>http://h.test/section/page.html?a=1&amp;b=2</loc><lastmod>2024-01-02</lastmod></url>\n", 10_000)
	b.SetBytes(int64(len(list)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range Read(strings.NewReader(list), testURL, Config{}) {
			n++
		}
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}
