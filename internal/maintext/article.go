package maintext

import (
	"net/url"
	"strings"

	trafilatura "github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
)

// The least weights of an article, in Latin letters.
const (
	enough = 250 // the library is believed
	some   = 20  // below this the library takes the whole page, so it is not asked to
)

// readArticle fills in the main text, and what of headline and author the head did not say.
func (t *Text) readArticle(doc *html.Node, page string) {
	u, err := url.Parse(page)
	if err != nil {
		u = nil
	}
	config := trafilatura.DefaultConfig()
	config.MinExtractedSize = int(some * lightness(doc))
	r, err := trafilatura.ExtractDocument(doc, trafilatura.Options{
		Config: config, OriginalURL: u, ExcludeComments: true, HtmlDateMode: trafilatura.Disabled,
	})
	if err == nil {
		t.Text = render(r.ContentNode)
		if t.Headline == "" {
			t.Headline = respace(collapse(r.Metadata.Title, maxField), t.Title)
		}
		if t.Author == "" {
			t.Author = collapse(r.Metadata.Author, maxField)
		}
	}
	t.Text = afterHeadline(t.Text, t.Headline)
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
