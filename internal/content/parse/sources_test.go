package parse

import (
	"strings"
	"testing"

	"kumo/internal/base/page"
)

func TestCSS(t *testing.T) {
	for in, want := range map[string]string{
		`a{b:url(x) , url( "y" ) , URL('z')}`:                            "css x, css y, css z",
		`@import "a"; @IMPORT url(b) layer(c) screen; @import url("d")`:  "style a, style b, style d",
		`/* url(no) */ p{content:"url(no)"; x:url(a)} /* @import "no" `:  "css a",
		`@namespace svg url(no); @namespace "no"; a{b:url(c)}`:           "css c",
		`@font-face{src:url(a.woff2) format("no"), local("no")}`:         "css a.woff2",
		`a{b:image-set("x.png" 1x, url(y.png) 2x, "z" type("no")) "no"}`: "css x.png, css y.png, css z",
		`a{b:url(a\)b\28 c)}`: "css a)b(c",
		`a{b:url("a\22 b\
c")}`: "css a\"bc",
		`a{b:url(a b)}`:                                          "",
		`a{b:url()} c{d:url("")} e{f:myurl(no)}`:                 "",
		`a{b:src("x")}`:                                          "css x",
		"a{b:url(\"no\nurl(x)}":                                  "css x",
		`@import url(x`:                                          "style x",
		`@media print{@import "a";} @charset "no"; b{}`:          "style a",
		`a{b:url(data:image/png;base64,xx) url(é.png)}`:          "css data:image/png;base64,xx, css é.png",
		`<!-- a{b:url(x)} --> a[href="no"]:hover{c:url(d` + `)}`: "css x, css d",
		`\`: "", `url(\`: "css ", `"\`: "", `@import "\`: "style ",
	} {
		var got []string
		for ref, kind := range cssReferences([]byte(in)) {
			got = append(got, kind.String()+" "+string(unescapeCSS(ref)))
		}
		if strings.TrimSuffix(strings.Join(got, ", "), "\\") != want {
			t.Errorf("%s\n got %s\nwant %s", in, strings.Join(got, ", "), want)
		}
	}
}

func TestLinkedData(t *testing.T) {
	for json, want := range map[string]string{
		`{"@context":"https://schema.org","@type":"http://h.test/no","url":"/a","name":"http://h.test/b","description":"see http://h.test/no"}`: "jsonld /a, jsonld /b",
		`{"url":"http:\/\/h.test\/a\u002Fb","sameAs":["http://h.test/c","d"]}`:                                                                  "jsonld /a/b, jsonld /c, jsonld /d/d",
		`{"image":{"@type":"ImageObject","@id":"http://h.test/#no","url":"/i","contentUrl":"/j","author":{"url":"/k"}},"logo":"/l"}`:            "img /i, img /j, jsonld /k, img /l",
		`{"image":["/a",{"url":"/b"}],"thumbnailUrl":"/c","contentUrl":"/d","embedUrl":"/e"}`:                                                   "img /a, img /b, img /c, media /d, media /e",
		`{"@context":{"x":{"@id":"http://h.test/no"},"url":"http://h.test/no"},"@graph":[{"@id":"#no"},{"@id":"_:no"},{"@id":"/a"}]}`:           "jsonld /a",
		`{"potentialAction":{"target":{"urlTemplate":"http://h.test/?q={q}"}},"availability":"https://schema.org/InStock"}`:                     "",
		`{"itemListElement":[{"item":{"@id":"/a","name":"x"}},{"item":"/b"}],"mainEntityOfPage":{"@id":"/c"}}`:                                  "jsonld /a, jsonld /b, jsonld /c",
		`[{"url":"/a"},"http://h.test/b",{"n":1,"b":true,"url":"/c"}]`:                                                                          "jsonld /a, jsonld /b, jsonld /c",
		`{"url":"/a",}}}]]{"url":"/b"`: "jsonld /a, jsonld /b",
		`{"url":"/a`:                   "jsonld /a",
		`{"url":"\`:                    "",
		`"`:                            "",
	} {
		if got := links(parse(t, "<script type='Application/LD+JSON; charset=utf-8'>"+json+"</script>")); got != want {
			t.Errorf("%s\n got %s\nwant %s", json, got, want)
		}
	}
	if got := links(parse(t, `<script type=application/json>{"url":"http://h.test/no"}</script>`)); got != "" {
		t.Errorf("other JSON: %s", got)
	}
}

func TestPaths(t *testing.T) {
	for script, want := range map[string]string{
		`f("/a/b", './c', "../d/", 'http://h.test/e', "//h.test/f")`:              "/a/b, /d/c, /d/, /e, /f",
		`"text/html" "a/b" "1/2" "/" "//" "/*" "//x" "a.b" "a b/c.html" "x/" + y`: "",
		`"dir/page.html" "api/list.json?a=b" 'img/x.png' "12/x.exe" "a:b/c.html"`: "/d/dir/page.html, " +
			"/d/api/list.json?a=b, /d/img/x.png",
		"`/t/x` `/t/${x}` \"http:\\/\\/h.test\\/y\" '/é'": "/t/x, /y",
		"don't\n'/a' // it's\n'/b'":                       "/a, /b",
		`"` + strings.Repeat("/a", 999) + `" "/b"`:        "/b",
		`'unclosed`: "",
	} {
		got := links(parseWith(t, Config{Scripts: true}, nil, "<script>"+script+"</script>"))
		if got = strings.ReplaceAll(got, "path ", ""); got != want {
			t.Errorf("%s\n got %s\nwant %s", script, got, want)
		}
	}
}

func TestTextLinks(t *testing.T) {
	for in, want := range map[string]string{
		"See http://a.test/b, (https://c.test/d) and <HTTP://e.test>.": "http://a.test/b https://c.test/d HTTP://e.test",
		"http://a.test/b_(c) http://a.test/d). [http://a.test/e]":      "http://a.test/b_(c) http://a.test/d http://a.test/e",
		"xhttp://no.test ftp://no.test ://no.test http:// https://":    "",
		"http://a.test/\"x http://b.test/`y http://é.test/ü!":          "http://a.test/ http://b.test/ http://é.test/ü",
		"http://a.test/?u=http://b.test/":                              "http://a.test/?u=http://b.test/",
		"http://a.test/" + strings.Repeat("x", 10_000):                 "",
	} {
		var got []string
		for url := range TextLinks([]byte(in)) {
			got = append(got, string(url))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n got %q\nwant %q", in, got, want)
		}
	}
}

func FuzzSources(f *testing.F) {
	f.Add([]byte(`@import "a"; p{x:url(b\29 c) image-set("d" type("e"))} /* */`))
	f.Add([]byte(`{"@context":{"@id":"x"},"image":[{"url":"\u00e9\/"}],"sameAs":["http://a.test"]}`))
	f.Add([]byte("f('/a') `b/c.html` \"http://a.test/\" (see http://b.test/c).)"))
	p := New(Config{MaxLinks: 20})
	f.Fuzz(func(t *testing.T, in []byte) {
		p.text.init(utf8Charset, utf8Charset, in)
		p.links.reset()
		p.linkedData(in)
		p.styles(in)
		p.paths(in)
		p.addresses(in)
		var pg page.Page
		p.fill(&pg)
		checkPage(t, &pg)
	})
}
