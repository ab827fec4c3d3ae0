package maintext

import (
	"log/slog"
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// minLibraryWeight is the weight of an article, in Latin letters, from which the library is believed.
const minLibraryWeight = 250

// readArticle fills in the main text, and the headline if the head did not say it. A text that the head has is taken
// where the page shows less, as one does that scripts fill. It returns the tree that the text is of, nil if it is of
// none.
func (t *Text) readArticle(doc *html.Node, page string) *html.Node {
	data := articleText(t.Text)
	found := t.readBody(doc, page)
	if shown := weigh(t.Text); shown < minLibraryWeight && shown < weigh(data) {
		t.Text = data
		return nil
	}
	return found
}

// readBody looks for the main text in what a page shows: by the library, and by blocks where the library finds little.
// It changes the tree, and returns the part that was chosen.
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
	parser.Logger = slog.New(slog.DiscardHandler) // the library's own formats what it discards
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
		t.Text = "" // more than half of it is in links: a menu or the list of a folder is about other pages
	}
	found := weigh(t.Text)
	if found >= minLibraryWeight && 2*found >= all {
		return chosen // the blocks cannot weigh more than twice as much
	}
	own := blocks(doc)
	other := weigh(own)
	if found < minLibraryWeight && found < other || 2*found < other {
		t.Text, chosen = own, doc
	}
	return chosen
}

// minArticle is how many characters the library wants of an article before it looks again, less strictly.
const minArticle = 200

// respace gives the title where a headline differs from it by spaces only: the library puts some around inline markup.
func respace(headline, title string) string {
	if strings.ReplaceAll(headline, " ", "") == strings.ReplaceAll(title, " ", "") {
		return title
	}
	return headline
}

// headingsOf are the texts of a page's headings of the first rank.
func headingsOf(doc *html.Node) map[string]bool {
	all := map[string]bool{}
	for n := range descendants(doc) {
		if n.DataAtom == atom.H1 {
			all[textOf(n)] = true
		}
	}
	return all
}

// afterHeading is a text without the heading that it begins with.
func afterHeading(text string, headings map[string]bool) string {
	first, rest, _ := strings.Cut(text, "\n")
	if headings[first] {
		return rest
	}
	return text
}
