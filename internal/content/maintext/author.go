package maintext

import (
	"cmp"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// findAuthor finds the author in the visible part of a page: in microdata, in a link with rel=author, or in an element
// with a matching class, in this order. It returns "" if there is none, or if the text does not look like a name.
func findAuthor(doc *html.Node) string {
	var linked, marked, named string
	for n := range descendants(doc) {
		if n.Type != html.ElementNode || n.DataAtom == atom.Body || n.DataAtom == atom.Html {
			continue
		}
		switch {
		case linked == "" && hasWord(attr(n, "rel"), "author"):
			linked = nameOf(n)
		case marked == "" && hasWord(attr(n, "itemprop"), "author"):
			marked = nameOf(nameIn(n))
		case named == "" && isNamed(n, authorNames):
			named = nameOf(n)
		}
	}
	return cmp.Or(marked, linked, named)
}

// authorNames are words in the class or id of elements that contain an author's name.
var authorNames = wordSet("author authors byline autor authorname auteur writer")

// nameIn returns the descendant with the name of an author, or the element itself.
func nameIn(author *html.Node) *html.Node {
	for n := range descendants(author) {
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
	afterName  = regexp.MustCompile(`(?i)\s*(?:[|•·/@–(\d]|,\s|\s-\s|\b(?:on|am|posted|published|updated|le|il|el)\b).*$`)
	maxNameLen = 60
)

// nameOf returns the name in an element. It returns "" if the text is not a name, because it is too long or contains
// digits or address characters.
func nameOf(n *html.Node) string {
	text := shortTextOf(n)
	if text == "" {
		text = attr(n, "content")
	}
	text = strings.TrimSpace(afterName.ReplaceAllString(writtenBy.ReplaceAllString(text, ""), ""))
	if text == "" || len(text) > maxNameLen || strings.ContainsAny(text, "0123456789@:<>?!") ||
		len(strings.Fields(text)) > 5 {
		return ""
	}
	return collapse(text, maxField)
}
