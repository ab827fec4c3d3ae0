package synthweb

import (
	"bytes"
	"strconv"
	"strings"
)

// robots is the status and text of a host's robots.txt. All of them forbid the same paths, to anyone, in different
// words.
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

// forbids reports whether a host's robots.txt forbids a path with query.
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
