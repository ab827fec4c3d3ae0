package maintext

import (
	"log/slog"
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// minLibraryWeight is the minimum weight of an article, in Latin letters, for which the library's result is trusted.
const minLibraryWeight = 250

// readArticle sets the main text, and the headline if the head has none. If the page shows less text than its JSON-LD
// has, as a page filled by scripts does, it uses the JSON-LD text. It returns the subtree with the text, or nil if the
// text is not from the tree.
func (t *Text) readArticle(doc *html.Node, page string) *html.Node {
	data := articleText(t.Text)
	found := t.readBody(doc, page)
	if shown := weigh(t.Text); shown < minLibraryWeight && shown < weigh(data) {
		t.Text = data
		return nil
	}
	return found
}

// readBody finds the main text in the visible part of a page: with the library, or with blocks if the library finds too
// little. It changes the tree, and returns the chosen subtree.
func (t *Text) readBody(doc *html.Node, page string) (chosen *html.Node) {
	t.Text = ""
	u, err := url.Parse(page)
	if err != nil {
		u = nil
	}
	headings := headingsOf(doc)
	removeAsides(doc)
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	parser.Logger = slog.New(slog.DiscardHandler) // the default logger formats messages that it discards
	parser.CharThresholds = minArticle
	if r, err := parser.ParseDocument(doc, u); err == nil {
		if r.Node != nil {
			removeLinkLists(r.Node)
		}
		t.Text = render(r.Node, doc)
		chosen = r.Node
		if t.Headline == "" {
			t.Headline = respace(collapse(r.Title(), maxField), t.Title)
		}
	}
	headings[t.Headline] = true
	t.Text = afterHeading(t.Text, headings)
	all, links := weighNode(doc, false)
	if weigh(t.Text) > 2*(all-links) {
		t.Text = "" // more than half of it is in links, as in a menu or a directory listing
	}
	found := weigh(t.Text)
	if found >= minLibraryWeight && 2*found >= all {
		return chosen // blocks cannot find more than twice as much
	}
	own := blocks(doc)
	other := weigh(own)
	if found < minLibraryWeight && found < other || 2*found < other {
		t.Text, chosen = own, doc
	}
	return chosen
}

// minArticle is the minimum number of characters that the library accepts; below it, the library retries with weaker
// rules.
const minArticle = 200

// respace returns the title if it differs from the headline only in spaces, which the library inserts around inline
// markup.
func respace(headline, title string) string {
	if strings.ReplaceAll(headline, " ", "") == strings.ReplaceAll(title, " ", "") {
		return title
	}
	return headline
}

// headingsOf returns the texts of the h1 elements.
func headingsOf(doc *html.Node) map[string]bool {
	all := map[string]bool{}
	for n := range descendants(doc) {
		if n.DataAtom == atom.H1 {
			all[textOf(n)] = true
		}
	}
	return all
}

// afterHeading removes the first line of a text if it is a heading.
func afterHeading(text string, headings map[string]bool) string {
	first, rest, _ := strings.Cut(text, "\n")
	if headings[first] {
		return rest
	}
	return text
}
