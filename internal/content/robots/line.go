package robots

import (
	"bytes"
	"strings"
)

const (
	maxBody = 500 << 10  // the minimum that RFC 9309 requires of parsers
	maxLine = 2083*8 - 1 // the limit of Google's parser: eight times the longest URL in old browsers
	bom     = "\uFEFF"
)

// A directive is the type of a line.
type directive uint8

const (
	unknown directive = iota
	userAgent
	allow
	disallow
	sitemap
	crawlDelay
	requestRate
	cleanParam
	usage
)

// directives are prefixes of a line's key, in any letter case.
var directives = []struct {
	name string
	is   directive
}{
	{"disallow", disallow}, {"allow", allow}, {"user-agent", userAgent}, {"sitemap", sitemap},
	{"crawl-delay", crawlDelay}, {"request-rate", requestRate}, {"clean-param", cleanParam},
	// Frequent misspellings.
	{"useragent", userAgent}, {"user agent", userAgent}, {"site-map", sitemap},
	{"dissallow", disallow}, {"dissalow", disallow}, {"disalow", disallow}, {"diasllow", disallow}, {"disallaw", disallow},
	{"crawldelay", crawlDelay}, {"crawl delay", crawlDelay},
	// Statements about the use of pages.
	{"content-usage", usage}, {"content-signal", usage}, {"license", usage},
}

func directiveOf(key string) directive {
	for _, d := range directives {
		if len(key) >= len(d.name) && strings.EqualFold(key[:len(d.name)], d.name) {
			return d.is
		}
	}
	return unknown
}

// readable returns the part of a file that is parsed: its first 500 KiB without a byte order mark. A line that the
// limit would cut is dropped, because half of "Disallow: /private/" may block everything.
func readable(body []byte) string {
	if len(body) > maxBody {
		end := bytes.LastIndexAny(body[:maxBody+1], "\r\n")
		body = body[:end+1]
	}
	for i := 0; i < len(bom) && len(body) > 0 && body[0] == bom[i]; i++ {
		body = body[1:]
	}
	return string(body)
}

// nextLine splits off the first line of text, which may end with LF, CR or CRLF.
func nextLine(text string) (line, rest string) {
	end := strings.IndexAny(text, "\r\n")
	if end < 0 {
		return text, ""
	}
	line, rest = text[:end], text[end+1:]
	if text[end] == '\r' && rest != "" && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest
}

// splitLine returns a line without its comment, and its key and value; false if it has none. It ignores the rest of a
// line that is too long. The value is a suffix of the line. If the colon is missing, white space between two words
// replaces it.
func splitLine(line string) (stripped, key, value string, ok bool) {
	line = line[:min(len(line), maxLine)]
	if end := strings.IndexAny(line, "#\x00"); end >= 0 {
		line = line[:end]
	}
	line = strings.Trim(line, space)
	key, value, ok = strings.Cut(line, ":")
	if !ok {
		if end := strings.IndexAny(line, " \t"); end >= 0 {
			key, value = line[:end], strings.TrimLeft(line[end:], " \t")
			ok = !strings.ContainsAny(value, " \t")
		}
	}
	key, value = strings.Trim(key, space), strings.Trim(value, space)
	return line, key, value, ok && key != ""
}

const space = " \t\n\v\f\r"
