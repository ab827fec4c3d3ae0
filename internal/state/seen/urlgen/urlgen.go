// Package urlgen generates realistic URLs for benchmarks from a seed, without storing them.
//
// The sizes of sites follow Zipf's law. Each site has a style (blog, news, shop, forum, wiki, manual), and its pages
// share folders. Paths have dates, slugs and numbers, and some URLs have queries. The new links of one page are on one
// site. A share of the URLs are repetitions, of recent URLs with a higher probability.
package urlgen

import (
	"kumo/internal/base/splitmix"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Repeats is the share of URLs that were generated before.
const Repeats = 0.6

const (
	sites    = 1 << 20
	together = 16 // new URLs in a row on one site
)

// A Stream generates URLs, 80 bytes long on average.
type Stream struct {
	dice *rand.Rand
	seed uint64
	n    uint64 // new URLs so far
}

// New returns the stream for a seed.
func New(seed uint64) *Stream { return &Stream{dice: rand.New(rand.NewPCG(seed, 1)), seed: seed} }

// Append appends the next URL to b.
func (s *Stream) Append(b []byte) []byte {
	if s.n > 0 && s.dice.Float64() < Repeats {
		// log-uniform: ages from 1 to 10 are as frequent as from 1,000 to 10,000
		age := math.Exp(s.dice.Float64() * math.Log(float64(s.n)))
		return s.url(b, s.n-uint64(age))
	}
	s.n++
	return s.url(b, s.n-1)
}

// Generated returns the number of new URLs so far. A few of them equal an earlier one by chance.
func (s *Stream) Generated() uint64 { return s.n }

func (s *Stream) url(b []byte, i uint64) []byte {
	page := bag{splitmix.Next(s.seed + i/together)}
	// the k-th site has 1/k of the URLs of the first
	rank := math.Exp(float64(page.draw(1<<30)) / (1 << 30) * math.Log(sites))
	site := bag{splitmix.Next(s.seed ^ uint64(rank)<<20)}
	b = append(b, "https://"...)
	if site.draw(2) == 0 {
		b = append(b, "www."...)
	}
	b = site.slug(b, '-', 2)
	if site.draw(3) == 0 {
		b = strconv.AppendUint(b, site.draw(100), 10)
	}
	b = append(b, tops[site.draw(uint64(len(tops)))]...)
	link := bag{splitmix.Next(s.seed + splitmix.Next(i))}
	return styles[site.draw(uint64(len(styles)))](b, &page, &link)
}

var tops = []string{".com", ".com", ".com", ".org", ".net", ".de", ".co.uk", ".jp", ".fr", ".info"}

// A style generates the path of one kind of site: page determines the part that links of a page share, link the rest.
var styles = []func(b []byte, page, link *bag) []byte{blog, news, shop, forum, wiki, manual}

func blog(b []byte, page, link *bag) []byte {
	b = append(b, '/')
	b = strconv.AppendUint(b, 2005+page.draw(20), 10)
	b = append(b, '/', '0'+byte(page.draw(2)), '1'+byte(page.draw(9)), '/')
	return append(link.slug(b, '-', 5+int(link.draw(3))), '/')
}

func news(b []byte, page, link *bag) []byte {
	b = page.slug(append(b, '/'), '/', 2)
	b = link.slug(append(b, '/'), '-', 4+int(link.draw(3)))
	b = strconv.AppendUint(append(b, '-'), 1e6+link.draw(8e6), 10)
	return append(b, ".html"...)
}

func shop(b []byte, page, link *bag) []byte {
	b = page.slug(append(b, "/shop/"...), '/', 2)
	b = link.slug(append(b, '/'), '-', 3)
	b = strconv.AppendUint(append(b, "-p"...), link.draw(1e7), 10)
	if link.draw(3) == 0 {
		b = link.slug(append(b, "?color="...), '-', 1)
		b = strconv.AppendUint(append(b, "&size="...), link.draw(50), 10)
	}
	return b
}

func forum(b []byte, page, link *bag) []byte {
	b = strconv.AppendUint(append(b, "/community/forum/viewtopic.php?f="...), page.draw(90), 10)
	b = strconv.AppendUint(append(b, "&t="...), 1e5+link.draw(2e6), 10)
	return strconv.AppendUint(append(b, "&start="...), 20*link.draw(9), 10)
}

func wiki(b []byte, page, link *bag) []byte {
	b = link.slug(append(b, "/wiki/"...), '_', 3)
	b = append(page.slug(append(b, "_("...), '_', 1), ')')
	return strconv.AppendUint(append(b, "?oldid="...), 1e7+link.draw(8e7), 10)
}

func manual(b []byte, page, link *bag) []byte {
	b = strconv.AppendUint(append(b, "/docs/en/v"...), page.draw(9), 10)
	b = page.slug(append(b, '/'), '/', 3)
	b = link.slug(append(b, '/'), '/', 2)
	b = strconv.AppendUint(append(b, '-'), link.draw(1e4), 10)
	return append(b, ".html"...)
}

var words = strings.Fields(`
	about account action after again air album animal answer area army art author autumn bank base beach bed bell bird
	black blue board body book bottle box bread bridge brother building business camera capital car care case castle cat
	chair change child church city class clock cloud coast coffee color company computer concert cook corner country
	course cross culture dance data day design desk dinner doctor dog door dream dress drive early earth east economy edge
	education egg energy engine evening event eye face family farm fashion father festival field film finance fire fish
	flight floor flower food football forest friend fruit future game garden gas gift girl glass global gold government
	grass great green group guide hair hall hand harbor head health heart hill history holiday home horse hospital hotel
	house human ice idea image industry insurance island job journey judge kitchen knowledge lake land language law leader
	library life light line little local love machine market match medicine meeting memory metal milk minute mobile model
	money month moon morning mother mountain music name nature network night north number ocean office oil open orange
	paper park party people phone photo picture plan planet plant player poem police power price project question radio
	rain record report restaurant review river road room school science sea season secret service ship shop silver simple
	small snow social software song south space sport spring square star station stone story street student summer sun
	table teacher team technology theater time town travel tree university valley video village voice water week west
	white wind winter wood world year young`)

// A bag is a source of pseudorandom numbers.
type bag struct{ v uint64 }

// draw returns a number less than n.
func (b *bag) draw(n uint64) uint64 {
	hi, _ := bits.Mul64(b.v, n)
	b.v = splitmix.Next(b.v)
	return hi
}

// slug appends n words.
func (b *bag) slug(to []byte, sep byte, n int) []byte {
	for i := range n {
		if i > 0 {
			to = append(to, sep)
		}
		to = append(to, words[b.draw(uint64(len(words)))]...)
	}
	return to
}
