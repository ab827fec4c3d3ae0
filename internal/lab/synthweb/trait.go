package synthweb

import (
	"bytes"
	"strconv"
	"strings"
)

// A Trait is a property of a host. Some traits make a host dead: dead hosts are added to Config.Hosts, have four pages
// each and no links.
type Trait uint8

// The traits.
const (
	Gzip      Trait = iota // compresses responses for clients that accept it
	Chunked                // uses chunked transfer coding
	Closing                // closes the connection after each answer
	Legacy                 // writes windows-1251, Shift_JIS or GBK
	Delay                  // sends a Crawl-delay
	Throttle               // answers with bursts of 429 and Retry-After
	Slow                   // takes Config.Slow to answer
	Trap                   // has an endless calendar
	NoRobots               // robots.txt is missing: everything is allowed
	Forbidden              // robots.txt answers 403: everything is allowed
	Shut                   // dead: robots.txt forbids everything
	Failing                // dead: robots.txt answers 500, which forbids everything
	Refused                // dead: nothing listens
	Hanging                // dead: accepts requests and never answers
	Mute                   // dead: its name does not exist
	numTraits
)

var traitNames = [numTraits]string{"gzip", "chunked", "closing", "legacy", "delay", "throttle", "slow", "trap",
	"norobots", "forbidden", "shut", "failing", "refused", "hanging", "mute"}

func (t Trait) String() string { return traitNames[t] }

func (t Trait) dead() bool { return t >= Shut }

// traits is a set of Traits.
type traits uint32

func (s traits) has(t Trait) bool { return s>>t&1 != 0 }

func (s *traits) put(t Trait) { *s |= 1 << t }

// sparse assigns a trait to count of n hosts, spaced evenly from a start that the seed determines.
func sparse(count, n int, start uint64, give func(i int)) {
	for j := range min(count, n) {
		give(int((start%uint64(n) + uint64(j)*uint64(n)/uint64(count)) % uint64(n)))
	}
}

// robots returns the status and text of a host's robots.txt. All of them forbid the same paths for every crawler, in
// different forms.
func (w *Web) robots(i uint32) (status int, text string) {
	h := &w.hosts[i]
	switch {
	case h.traits.has(NoRobots):
		return 404, ""
	case h.traits.has(Forbidden):
		return 403, ""
	case h.traits.has(Failing):
		return 500, ""
	case h.traits.has(Shut):
		return 200, "User-agent: *\nDisallow: /\n"
	}
	rules := "Disallow: /private/\nAllow: /private/open/\nDisallow: /*.cgi$\n"
	if h.traits.has(Delay) {
		rules += "Crawl-delay: " + strconv.FormatFloat(w.cfg.CrawlDelay.Seconds(), 'f', -1, 64) + "\n"
	}
	switch i % 4 {
	case 1:
		return 200, "# Some may, some may not.\nUser-agent: badbot\nDisallow: /\n\nUser-agent: kumo\nUser-agent: *\n" + rules
	case 2:
		return 200, strings.ReplaceAll("USER-AGENT:*# all\n"+strings.ToUpper(rules[:9])+rules[9:], "\n", "\r\n")
	case 3:
		return 200, "User-agent: kumo\n" + rules + "\nUser-agent: *\n" + rules
	}
	return 200, "User-agent: *\n" + rules
}

// forbids reports whether a host's robots.txt forbids a path and query.
func (w *Web) forbids(i uint32, target []byte) bool {
	h := &w.hosts[i]
	switch {
	case h.traits.has(NoRobots), h.traits.has(Forbidden), string(target) == "/robots.txt":
		return false
	case h.traits.has(Shut), h.traits.has(Failing):
		return true
	}
	var buf [256]byte
	if bytes.IndexByte(target, '%') >= 0 {
		target = unescape(buf[:0], target)
	}
	if bytes.HasPrefix(target, []byte("/private/open/")) {
		return false
	}
	return bytes.HasPrefix(target, []byte("/private/")) || bytes.HasSuffix(target, []byte(".cgi"))
}
