package weburl

import "testing"

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("https://www.example.com/articles/2024/05/some-title.html?page=2"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	base, err := Parse("https://www.example.com/articles/2024/05/index.html")
	if err != nil {
		b.Fatal(err)
	}
	for _, link := range []struct{ name, ref string }{
		{"relative", "../06/some-title.html?page=2"},
		{"rooted", "/articles/2024/06/some-title.html"},
		{"absolute", "https://www.example.org/articles/2024/06/some-title.html?page=2"},
		{"escaped", "/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/12.html"},
		{"messy", " HTTPS://User@WWW.Example.ORG:443/a/./b%7e/../c d/%e4%bd%a0?q=a|b&c=100%#top\n"},
		{"idna", "https://bücher.example/straße"},
		{"mailto", "mailto:someone@example.com"},
	} {
		b.Run(link.name, func(b *testing.B) {
			b.ReportAllocs()
			buf, ref := make([]byte, 0, 512), []byte(link.ref)
			for b.Loop() {
				buf, _ = base.AppendCanonical(buf[:0], ref)
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	seed, _ := Parse("https://www.example.com/docs/")
	u, _ := Parse("https://www.example.com/docs/guide/chapter/page.html?x=1")
	for _, mode := range []Mode{ScopeHost, ScopePage, ScopePrefix, ScopeDomain, ScopeAny} {
		b.Run(mode.String(), func(b *testing.B) {
			s := NewScope(mode)
			s.AddSeed(seed)
			b.ReportAllocs()
			for b.Loop() {
				s.Judge(u)
			}
		})
	}
}

func BenchmarkRules(b *testing.B) {
	for _, link := range []struct{ name, href string }{
		{"plain", "https://example.com/articles/2024/05/some-title.html"},
		{"query", "https://example.com/articles/2024/05/some-title.html?a=1&page=2"},
		{"changed", "https://example.com/articles/index.html;jsessionid=1A2B3C?utm_source=feed&page=2&a=1"},
	} {
		u, _ := Parse(link.href)
		b.Run(link.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				allRules.Apply(u)
			}
		})
	}
}
