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
	if f.marked == "" && n.DataAtom == atom.Span && strings.HasSuffix(attr(n, "typeof"), "Person") {
		f.marked = d.nameOf(n) // RDFa
	}
	if is&authorName == 0 {
		return
	}
	if f.marked == "" && hasWord(attr(n, "itemprop"), "author") {
		f.marked = d.nameOf(d.nameIn(n))
	}
	if f.namedAuthor == "" {
		if name := d.nameOf(n); !roleNames[strings.ToLower(name)] {
			f.namedAuthor = name
		}
	}
}

// author returns the author from the most reliable source.
func (f *facts) author() string {
	return cmp.Or(f.marked, strings.Join(f.linked, "; "), f.namedAuthor)
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
		`(?i)^(?:(?:text|article|posted|written|published|story|artikel|ein gastbeitrag|foto|par|von|autorin|autor|auteur|author|by|da|di|de|por)[:\s]+)+`,
	)
	afterName = regexp.MustCompile(`(?i)\s*(?:[|•·/@–»(\d]|,\s|\s-\s|\b(?:on|am|posted|published|updated|le|il|el)\b).*$`)
	maxName   = 60
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
	if text == "" || len(text) > maxName || strings.ContainsAny(text, "0123456789@:<>?!") ||
		len(strings.Fields(text)) > 5 {
		return ""
	}
	return collapse(text, maxField)
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
