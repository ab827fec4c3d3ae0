package fields

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const manyRules = `
- name: all
  url: .
  each: {xpath: "//*[@class]"}
  fields: {a: "div div div div p", b: {xpath: "ancestor::*//following::b", list: true}, c: {css: "*", list: true, html: true},
    d: {css: "*", list: true, fields: {e: "*", f: {xpath: "string(.)"}}}}
- name: page
  url: .
  fields: {a: "div div div div > p:nth-child(3)", b: {xpath: "//div//div//b"}, c: {css: "*", list: true}, d: {css: "*", list: true, fields: {e: {css: "*", list: true}}},
    ld: {jsonld: "*.a.b", list: true}, refs: {jsonld: "*.a.a.a.a.b", list: true}, m: {meta: x, list: true}, md: {microdata: "*.a.a.a", list: true}, n: {css: "li:has(b) ~ li", list: true}}
`

// TestHostile applies expensive rules to expensive pages. The time must be bounded.
func TestHostile(t *testing.T) {
	rules, err := Parse("rules.yaml", []byte(manyRules))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nested":   strings.Repeat("<div class=x>", 10_000) + "<b>deep",
		"siblings": strings.Repeat("<li class=x><b>", 20_000),
		"60 MB":    strings.Repeat("<p class=x>some text that goes on</p>", 60<<20/38),
		"json":     `<script type="application/ld+json">` + strings.Repeat(`[{"@type":"a","a":`, 20_000),
		"json wide": `<script type="application/ld+json">[` + strings.Repeat(`{"@type":"a","a":{"b":[1,2]}},`, 20_000) +
			"]</script>",
		"json refs": `<script type="application/ld+json">[{"@type":"t","@id":"x","a":[` + strings.Repeat(`{"@id":"x"},`,
			2000) +
			`{"@id":"x"}]}]</script>`,
		"items":   strings.Repeat("<div itemscope itemtype=x itemprop=a>", 5_000),
		"text":    "<p class=x>" + strings.Repeat("a \u00a0", 1<<20),
		"charset": "\xff\xfe<p class=\xff>\x80\x81</p>\x00",
		"meta":    strings.Repeat("<meta name=x content='"+strings.Repeat("y", 1000)+"'>", 2_000),
	} {
		t.Run(name, func(t *testing.T) {
			res := rules.NewReader().Read(Page{URL: "http://a/", Text: text}, false)
			size := 0
			for _, r := range res.Records {
				if size += len(r.Values); !json.Valid(r.Values) {
					t.Fatalf("%.200s is no JSON", r.Values)
				}
			}
			if size > 3*maxRecords {
				t.Errorf("%d bytes of records", size)
			}
			if name == "60 MB" && !res.Cut {
				t.Error("nobody says that there was more")
			}
		})
	}
}

func FuzzRules(f *testing.F) {
	f.Add([]byte(manyRules))
	f.Add([]byte("- name: a\n  url: x\n  fields: {a: b@c, d: {any: [e, {meta: f}], type: date}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := Parse("rules.yaml", data)
		if err == nil {
			rules.NewReader().Read(Page{URL: "http://x/", Text: "<p class=a>b<i itemscope itemtype=x><b itemprop=y>c"}, true)
		}
	})
}

func FuzzPages(f *testing.F) {
	rules, err := Parse("rules.yaml", []byte(manyRules))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("<p class=x>a<script type='application/ld+json'>{\"@type\":\"a\",\"a\":{\"b\":[1,]}}</script><meta name=x "+
		"content=y>", false)
	f.Add("<a class='b'><c:d/></a>", true)
	f.Fuzz(func(t *testing.T, text string, xml bool) {
		for _, r := range rules.NewReader().Read(Page{URL: "http://x/", Text: text, XML: xml}, true).Records {
			if !json.Valid(r.Values) {
				t.Fatalf("%s is no JSON", r.Values)
			}
		}
	})
}

// shopPage is a page of a shop of about 38 KB: 700 elements, as many texts, JSON-LD, Open Graph, microdata.
func shopPage() string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A thing - Shop</title>
<meta property="og:title" content="A thing"><meta property="og:image" content="/i/1.jpg"><meta name="description" content="It is a thing.">
<script type="application/ld+json">{"@context":"https://schema.org","@type":"Product","name":"A thing","offers":{"@type":"Offer","price":"12.50",
"priceCurrency":"EUR"},"aggregateRating":{"@type":"AggregateRating","ratingValue":4.5,"reviewCount":12}}</script>
<style>` + strings.Repeat(".a { color: red; margin: 0 auto } ", 60) + `</style></head><body><nav class="menu"><ul>`)
	for i := range 60 {
		fmt.Fprintf(&b, `<li class="entry"><a class="link" href="/c/%d?a=1&amp;b=2">Category %d</a></li>`, i, i)
	}
	b.WriteString(`</ul></nav><main><div class="product" itemscope itemtype="https://schema.org/Product"><h1 class="name" itemprop="name">A thing</h1>
<p class="price"><span>12,50</span> €</p><img class="main" src="/i/1.jpg" alt="">`)
	for i := range 80 {
		fmt.Fprintf(&b, `<p class="text">Paragraph %d says <b>something</b> about the thing, <a href="/p/%d">as others</a> do: lorem ipsum dolor sit amet, `+
			`consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.</p>`, i, i)
	}
	b.WriteString(`<table class="data">`)
	for i := range 30 {
		fmt.Fprintf(&b, `<tr><th>Property %d</th><td class="value">%d cm</td></tr>`, i, i)
	}
	b.WriteString(`</table></div><section id="reviews">`)
	for i := range 40 {
		fmt.Fprintf(&b, `<article class="review"><h3 class="by">Reviewer %d</h3><span class="stars" data-n="%d">*****</span><time datetime="2024-05-%02d">then</time>`+
			`<p>It is a good thing that I can recommend to everybody who is in want of one.</p></article>`, i, 1+i%5, 1+i%28)
	}
	b.WriteString("</section></main><footer>" + strings.Repeat(`<a href="/x">About us</a> `, 30) +
		"</footer></body></html>")
	return b.String()
}

const tenRules = `
- {name: r1, url: /p/, fields: {title: h1.name}}
- {name: r2, url: /p/, fields: {price: {css: .product .price span, type: number, required: true}}}
- {name: r3, url: /p/, fields: {image: {css: img.main, attr: src, type: url}}}
- {name: r4, url: /p/, fields: {price: {jsonld: Product.offers.price, type: number}}}
- {name: r5, url: /p/, fields: {about: {meta: og:title}}}
- {name: r6, url: /p/, fields: {name: {microdata: Product.name}}}
- {name: r7, url: /p/, fields: {values: {css: "table.data td.value", regex: '\d+', type: number, list: true}}}
- {name: r8, url: /p/, fields: {day: {css: "#reviews time", attr: datetime, type: date}}}
- {name: r9, url: /p/, fields: {links: {css: "nav > ul > li > a", attr: href, type: url, list: true}}}
- {name: r10, url: /p/, each: .review, fields: {by: .by, stars: {css: .stars, attr: data-n, type: number}, at: time@datetime}}
`

// BenchmarkTenRules applies ten rules to a page, rules that do not match it, and one XPath expression.
func BenchmarkTenRules(b *testing.B) {
	text := shopPage()
	for _, c := range []struct{ name, rules, url string }{
		{"ten", tenRules, "https://shop.example/p/1"},
		{"none for it", tenRules, "https://shop.example/q/1"},
		{"tree alone", "- {name: a, url: p, fields: {x: xyz}}", "https://shop.example/p/1"},
		{"an XPath", `- {name: a, url: p, fields: {x: {xpath: "//div[@class='product']//p[@class='price']/span"}}}`,
			"https://shop.example/p/1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			rules, err := Parse("rules.yaml", []byte(c.rules))
			if err != nil {
				b.Fatal(err)
			}
			r := rules.NewReader()
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Read(Page{URL: c.url, Text: text}, false)
			}
		})
	}
}
