package maintext

import (
	"cmp"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/base/months"
)

// authors reads the author's name in an element: in microdata, in a link with rel=author, or by the element's name.
func (f *facts) authors(d *document, n *html.Node, is names) {
	if n.DataAtom == atom.A && hasWord(attr(n, "rel"), "author") {
		f.linked = addAuthor(f.linked, d.nameOf(n))
		return
	}
	if f.profile == "" && n.DataAtom == atom.A && isAuthorURL(attr(n, "href")) {
		if name := d.nameOf(n); isName(name, 2) {
			f.profile = name
		}
	}
	if f.marked == "" && n.DataAtom == atom.Span && strings.HasSuffix(attr(n, "typeof"), "Person") {
		f.marked = d.nameOf(n) // RDFa
	}
	if is&authorName == 0 {
		return
	}
	if f.marked == "" && hasWord(attr(n, "itemprop"), "author") {
		f.marked = d.namesIn(d.nameIn(n))
	}
	if f.namedAuthor == "" {
		if name := d.namesIn(n); !roleNames[strings.ToLower(name)] {
			f.namedAuthor = name
		}
	}
}

// author returns the author from the most reliable source.
func (f *facts) author() string {
	return cmp.Or(f.marked, strings.Join(f.linked, "; "), f.namedAuthor, f.profile, f.spoken)
}

// nameIn returns the descendant with the name of an author, or the element itself.
func (d *document) nameIn(author *html.Node) *html.Node {
	for n := range d.near(author) {
		if hasWord(attr(n, "itemprop"), "name") {
			return n
		}
	}
	return author
}

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

var (
	writtenBy = regexp.MustCompile(
		`(?i)^(?:(?:text|article|post|posted|review|reply|reviewed|written|published|story|artikel|ein gastbeitrag|foto|par|von|autorin|autor|auteur|author|by|da|di|de|por)[:\s]+)+`,
	)
	afterName = regexp.MustCompile(`(?i)\s*(?:[|•·/@–»(]|\s\d|,\s|\s-\s|\b(?:on|am|posted|published|updated|le|il|el)\b).*$`)
	maxName   = 60
	maxWords  = 5 // of a name, or of two
)

// nameOf returns the name in an element. It returns "" if the text is not a name, because it is too long or contains
// digits or address characters.
func (d *document) nameOf(n *html.Node) string {
	text := d.shortTextOf(n)
	if text == "" {
		text = attr(n, "content")
	}
	text = strings.TrimSpace(writtenBy.ReplaceAllString(text, ""))
	if at := afterName.FindStringIndex(text); at != nil {
		text = withoutDate(text[:at[0]])
	}
	words := strings.Fields(text)
	if text == "" || len(text) > maxName || strings.ContainsAny(text, "@:<>?!") || len(words) > maxWords ||
		hasDigits(text, 1) && (len(words) > 1 || beginsWithDigit(text)) { // users may have a number
		return ""
	}
	return separateNames(collapse(text, maxField), joined)
}

// namesIn returns the names in an element: those of its first links, which only words such as "and" separate, if the
// text begins with the first one. Ranks, jobs and buttons may follow them. Otherwise the text is a name.
func (d *document) namesIn(n *html.Node) string {
	whole := d.nameOf(n)
	var found []string
	between, read := "", ""
	for c := range d.near(n) {
		switch {
		case c.DataAtom == atom.A:
			name := d.nameOf(c)
			if linkLabels[strings.ToLower(name)] {
				read = d.shortTextOf(c)
				continue
			}
			if name == "" || len(found) > 0 && !isConnector(between) || !isName(name, 1) && len(found) > 0 {
				return cmp.Or(strings.Join(found, "; "), whole)
			}
			found, read, between = addAuthor(found, name), "", ""
			for t := range d.near(c) {
				if t.Type == html.TextNode {
					read += t.Data
				}
			}
		case c.Type == html.TextNode:
			if rest, ok := strings.CutPrefix(read, c.Data); ok {
				read = rest // of the link
			} else if len(found) > 0 {
				between += c.Data
			} else if text := strings.TrimSpace(c.Data); text != "" && writtenBy.ReplaceAllString(text+" ", "") != "" {
				return whole // other text precedes the first link
			}
		}
	}
	return cmp.Or(strings.Join(found, "; "), whole)
}

// linkLabels are the labels of links before a name that lead to a post.
var linkLabels = wordSet("post posts reply permalink link")

var connectors = wordSet("and und et y e i en og och и & , / + •")

func isConnector(s string) bool {
	for word := range strings.FieldsSeq(strings.ReplaceAll(s, ",", " , ")) {
		if !connectors[strings.ToLower(word)] {
			return false
		}
	}
	return strings.TrimSpace(s) != ""
}

// roles are words of jobs, which follow names.
var roles = wordSet("editor writer correspondent reporter staff senior contributor team journalist author news press")

var (
	joined      = regexp.MustCompile(`\s+(?:and|und|et|&)\s+`)
	joinedComma = regexp.MustCompile(`\s*,\s*(?:(?:and|und|et|&)\s+)?|\s+(?:and|und|et|&)\s+`)
)

// separateNames separates joined names with "; ": each part must be a name of at least two words.
func separateNames(s string, at *regexp.Regexp) string {
	parts := at.Split(s, 9)
	if len(parts) < 2 || len(parts) > 8 {
		return s
	}
	for _, part := range parts {
		if !isName(part, 2) {
			return s
		}
		for word := range strings.FieldsSeq(part) {
			if roles[strings.ToLower(word)] {
				return s
			}
		}
	}
	return strings.Join(parts, "; ")
}

// withoutDate removes the words of a date, of which the number was cut off, from the end of a name.
func withoutDate(name string) string {
	words := strings.Fields(name)
	for len(words) > 0 {
		last := strings.ToLower(strings.Trim(words[len(words)-1], ".,"))
		if _, isWeekday := weekdayIn(last); !isWeekday && months.Number(last) == 0 {
			break
		}
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}
