package policy

import (
	"fmt"
	"slices"
)

// Sitemaps says which sitemaps a crawl reads.
type Sitemaps uint8

// The choices.
const (
	SitemapsNamed   Sitemaps = iota // those that robots.txt names
	SitemapsGuessed                 // and /sitemap.xml where it names none
	SitemapsIgnored                 // none
)

var sitemapsNames = [...]string{"named", "guess", "ignore"}

// ParseSitemaps reads a choice's name: named, guess or ignore.
func ParseSitemaps(name string) (Sitemaps, error) {
	if i := slices.Index(sitemapsNames[:], name); i >= 0 {
		return Sitemaps(i), nil
	}
	return 0, fmt.Errorf("sitemaps %q: not one of named, guess, ignore", name)
}

// SitemapsNames are the names of the choices.
func SitemapsNames() []string { return sitemapsNames[:] }

func (s Sitemaps) String() string { return sitemapsNames[s] }
