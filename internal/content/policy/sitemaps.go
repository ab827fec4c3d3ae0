package policy

import (
	"fmt"
	"slices"
)

// A Sitemaps value selects the sitemaps that a crawl reads.
type Sitemaps uint8

// Choices of sitemaps.
const (
	SitemapsNamed   Sitemaps = iota // those named in robots.txt
	SitemapsGuessed                 // also /sitemap.xml if robots.txt names none
	SitemapsIgnored                 // none
)

var sitemapsNames = [...]string{"named", "guess", "ignore"}

// ParseSitemaps parses the name of a choice: named, guess or ignore.
func ParseSitemaps(name string) (Sitemaps, error) {
	if i := slices.Index(sitemapsNames[:], name); i >= 0 {
		return Sitemaps(i), nil
	}
	return 0, fmt.Errorf("sitemaps %q: not one of named, guess, ignore", name)
}

// SitemapsNames returns the names of the choices.
func SitemapsNames() []string { return sitemapsNames[:] }

func (s Sitemaps) String() string { return sitemapsNames[s] }
