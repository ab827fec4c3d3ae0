package inflate

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// pages writes HTML that compresses about as well as real pages: words by Zipf's law, links of a few sites, repeated
// lists and classes, and random numbers.
type pages struct {
	r     *rand.Rand
	words []string
	links []string // of the site
	b     bytes.Buffer
}

func newPages(seed uint64) *pages {
	p := &pages{r: rand.New(rand.NewPCG(seed, 1))}
	for range 2000 {
		var w strings.Builder
		for range 1 + p.r.IntN(4) {
			w.WriteByte("bcdfghlmnprstvw"[p.r.IntN(15)])
			w.WriteString([]string{"a", "e", "i", "o", "u", "ea", "ou", "er", "in", "on", "an", "ti"}[p.r.IntN(12)])
		}
		p.words = append(p.words, w.String())
	}
	for range 150 {
		p.links = append(p.links, fmt.Sprintf("<a class=\"nav-link\" href=\"/%s/%s-%d.html\">%s</a>", p.word(), p.word(),
			p.r.IntN(1e5), p.text(2)))
	}
	return p
}

func (p *pages) word() string {
	return p.words[int(math.Pow(float64(len(p.words)), p.r.Float64()))-1]
}

func (p *pages) text(words int) string {
	var s []string
	for range words {
		s = append(s, p.word())
	}
	return strings.Join(s, " ")
}

// page returns a page of n bytes.
func (p *pages) page(n int) []byte {
	p.b.Reset()
	fmt.Fprintf(&p.b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>%s</title>\n",
		p.text(6))
	for i := range 6 {
		fmt.Fprintf(&p.b, "<link rel=\"stylesheet\" href=\"/static/css/%s.%08x.css?v=%d\">\n", p.word(), p.r.Uint32(), i)
	}
	p.b.WriteString("</head>\n<body class=\"page wide\">\n")
	for p.b.Len() < n {
		switch p.r.IntN(5) {
		case 0:
			p.b.WriteString("<ul class=\"nav\">\n")
			for range 2 + p.r.IntN(8) {
				fmt.Fprintf(&p.b, "  <li class=\"nav-item\">%s</li>\n", p.links[p.r.IntN(len(p.links))])
			}
			p.b.WriteString("</ul>\n")
		case 1:
			fmt.Fprintf(&p.b, "<div class=\"card\" id=\"c%d\"><img src=\"https://img.%s.example/%x.jpg\" alt=\"%s\" "+
				"width=\"%d\"></div>\n",
				p.r.IntN(1e6), p.word(), p.r.Uint64(), p.text(3), p.r.IntN(1000))
		case 2:
			fmt.Fprintf(&p.b, "<script>var %s = {\"id\": %d, \"%s\": \"%s\"};</script>\n", p.word(), p.r.IntN(1e9), p.word(),
				p.text(4))
		default:
			fmt.Fprintf(&p.b, "<p class=\"text\">%s, <a href=\"https://www.%s.example/%s\">%s</a> %s.</p>\n",
				p.text(5+p.r.IntN(30)), p.word(), p.word(), p.text(2), p.text(5+p.r.IntN(40)))
		}
	}
	return bytes.Clone(p.b.Bytes()[:n])
}
