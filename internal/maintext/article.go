package maintext

import (
	"net/url"
	"strings"

	trafilatura "github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
)

// enough is the weight of an article, in Latin letters, from which the library is believed.
const enough = 250

// readArticle fills in the main text, and what of headline and author the head did not say. A text that the head has is taken
// where the page shows less, as one does that scripts fill.
func (t *Text) readArticle(doc *html.Node, page string) {
	data := plain(t.Text)
	t.readBody(doc, page)
	if shown := weigh(t.Text); shown < enough && shown < weigh(data) {
		t.Text = data
	}
}

// readBody looks for the main text in what a page shows: by the library, and by blocks where the library finds little.
func (t *Text) readBody(doc *html.Node, page string) {
	t.Text = ""
	u, err := url.Parse(page)
	if err != nil {
		u = nil
	}
	config := trafilatura.DefaultConfig()
	config.MinExtractedSize = 0 // below it the library adds the whole page, title and all, to what it has found
	config.MinOutputSize = 0    // below it there is no headline
	r, err := trafilatura.ExtractDocument(doc, trafilatura.Options{
		Config: config, OriginalURL: u, ExcludeComments: true, HtmlDateMode: trafilatura.Disabled,
	})
	if err == nil {
		t.Text = render(r.ContentNode, doc)
		if t.Headline == "" {
			t.Headline = respace(collapse(r.Metadata.Title, maxField), t.Title)
		}
		if t.Author == "" {
			t.Author = collapse(r.Metadata.Author, maxField)
		}
	}
	t.Text = afterHeadline(t.Text, t.Headline)
	if total, links := weighNode(doc, false); weigh(t.Text) > 2*(total-links) {
		t.Text = "" // more than half of it is in links: a menu or the list of a folder is about other pages
	}
	own := blocks(doc)
	found, other := weigh(t.Text), weigh(own)
	if found < enough && found < other || 2*found < other {
		t.Text = own
	}
}

// respace gives the title where a headline differs from it by spaces only: the library puts some around inline markup.
func respace(headline, title string) string {
	if strings.ReplaceAll(headline, " ", "") == strings.ReplaceAll(title, " ", "") {
		return title
	}
	return headline
}

// afterHeadline is a text without the headline that it begins with.
func afterHeadline(text, headline string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if first == headline {
		return rest
	}
	return text
}
