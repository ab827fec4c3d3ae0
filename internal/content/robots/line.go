package robots

import (
	"bytes"
	"strings"
)

const (
	maxBody = 500 << 10  // what RFC 9309 asks a parser to read at least
	maxLine = 2083*8 - 1 // what Google reads of a line: eight times the longest URL that browsers took
	bom     = "\uFEFF"
)

// A directive is what a line is about.
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
)

// directives are the names by which a line's key is known: it begins with one of them, in upper or lower case.
var directives = []struct {
	name string
	is   directive
}{
	{"disallow", disallow}, {"allow", allow}, {"user-agent", userAgent}, {"sitemap", sitemap},
	{"crawl-delay", crawlDelay}, {"request-rate", requestRate}, {"clean-param", cleanParam},
	// Frequent slips.
	{"useragent", userAgent}, {"user agent", userAgent}, {"site-map", sitemap},
	{"dissallow", disallow}, {"dissalow", disallow}, {"disalow", disallow}, {"diasllow", disallow}, {"disallaw", disallow},
	{"crawldelay", crawlDelay}, {"crawl delay", crawlDelay},
}

func directiveOf(key string) directive {
	for _, d := range directives {
		if len(key) >= len(d.name) && strings.EqualFold(key[:len(d.name)], d.name) {
			return d.is
		}
	}
	return unknown
}

// readable is what is read of a file: its first 500 KiB without a byte order mark, whole or begun. A line that the
// limit would cut is left out, because half of "Disallow: /private/" may well forbid everything.
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

// nextLine cuts the first line off text, which may end with LF, CR or CRLF.
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

// splitLine gives a line without its comment and the key and value it consists of; false if it has none. Of a line that
// is too long, the rest is ignored. The value is the line's end. Where the colon is missing, white space between two
// words does.
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
