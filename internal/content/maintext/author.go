package maintext

import (
	"cmp"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// findAuthor gives the author whom a page shows where its head names none: by a link that says so, by a name in
// microdata, or by an element whose class says that it holds one. "" if there is none, or what there is looks like no
// name.
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

// authorNames are words in a class or an id of an element that names an author.
var authorNames = wordSet("author authors byline autor authorname auteur writer")

// nameIn is the element of an author that has the name.
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

// nameOf is the name that an element holds, "" if what it holds is no name: too long, in small letters, or with digits
// and addresses.
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
