// Package maintext extracts the main text, headline, author and publication date of a page.
//
// The main text excludes menus, advertisements, comments and footers. The go-readability library, a line-by-line port
// of Mozilla's Readability.js, finds the article. The package adds seven things:
//
//   - Bounds. The library takes no context, and its running time can be quadratic in the page. So a page is reduced
//     first: scripts, styles, comments, images, inline markup and purely presentational spans are removed. The
//     constants below limit the rest, and what exceeds them is not read. A panic in the library becomes an error.
//   - Boilerplate. Elements whose tag, role, class or id marks them as not main text are removed before the extraction.
//     Lists of links are removed after it, unless most of the page's prose is in them.
//   - Weights. The library counts characters, which suits Latin letters. Chinese needs a third as many characters for
//     the same content. So letters are weighted by script.
//   - Short pages and forums. The library extracts only one post of a thread. If it finds little, or less than half of
//     what a simple block classifier finds, the classifier's result is used. The classifier uses two features, length
//     and link density, of Kohlschütter, Fankhauser, Nejdl, "Boilerplate Detection using Shallow Text Features", WSDM
//     2010. Its thresholds are in letters instead of words. No line occurs more often than on the page. A page of only
//     links has no text, since its words are the names of other pages.
//   - Layout. Layout tables are treated as divs. Bare prose, and prose between line breaks, is treated as paragraphs.
//     If no element is marked as the article, the element with most of the paragraphs is.
//   - Lines. The text has one line per paragraph. Code samples keep their lines and indentation. No space is inserted
//     where inline markup splits a word, which matters in scripts without spaces.
//   - Dates and authors. The declared publication date comes first; a modification date is not used in its place. Dates
//     are parsed in some thirty languages.
//
// An ordinary page costs one or two milliseconds, so this work stays off the fetch path. docs/decisions/maintext.md
// compares the package with other libraries.
package maintext

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/html"

	"kumo/internal/content/lang"
)

// Limits of the part of a page that is read.
const (
	maxBody  = 16 << 20 // bytes of the page
	maxToken = 4 << 20  // bytes of a tag, text, script or comment; a longer one ends the page
	maxThin  = 1 << 20  // bytes kept after thinning
	maxTags  = 30_000   // tags kept after thinning
	maxTag   = 2 << 10  // bytes of a tag; a longer one loses its attributes
	maxDepth = 64       // open elements, without those that close by themselves; deeper ones are unwrapped
	maxField = 1 << 10  // bytes of a title, headline or author
)

// ErrTooLarge reports a page that exceeds a limit and was read in part.
var ErrTooLarge = errors.New("page too large")

// ErrPanic reports a panic in a library.
var ErrPanic = errors.New("library panicked")

// Text is the content of a page. Missing fields are "".
type Text struct {
	Title    string // the title element, white space collapsed, at most 1 KiB
	Headline string // the article's headline, without the site's name
	// the main text without the headline; one line for each paragraph, subheading, list item or row; tabs between
	// cells; pre unchanged
	Text      string
	Published string // RFC 3339 if the page declares time and zone, otherwise a date (2006-01-02); never before 1995
	Author    string // as written; several are separated by "; "
	Lang      string // the declared language, a canonical BCP 47 tag; not detected from the text
}

// Extract extracts the text of an HTML page in UTF-8; invalid bytes are read as U+FFFD. The url is the URL of the page,
// which may contain its date; "" if unknown. For a page without main text, Text.Text is empty and there is no error.
//
// Extract reads at most 16 MiB of a body, and of it 1 MiB or 30,000 tags after scripts, styles and inline markup were
// removed. If a page exceeds this, or has a tag, script or text of over 4 MiB, Extract returns the text up to there
// with an ErrTooLarge that contains the limit. Elements nested deeper than 64 levels lose their tags, but not their
// text.
//
// Extract is safe for concurrent use.
func Extract(body []byte, url string) (Text, error) { return extract(body, url, time.Now()) }

// Language returns the language of the main text; see [lang.Of].
func (t *Text) Language() string { return lang.Of(t.Text, t.Lang) }

// ExtractMarkdown is like Extract, but returns the main text in Markdown (CommonMark with GitHub tables): headings,
// lists, quotes, tables, code, links, emphasis, and images by their URLs. Markdown syntax in the page's text is
// escaped.
func ExtractMarkdown(body []byte, url string) (Text, error) {
	return read(body, url, time.Now(), true)
}

// extract is Extract at a given time; later publication dates are implausible.
func extract(body []byte, url string, now time.Time) (Text, error) {
	return read(body, url, now, false)
}

func read(body []byte, url string, now time.Time, markup bool) (t Text, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("main text of %q: %w: %v", url, ErrPanic, p)
		}
	}()
	small, tooLarge := thin(body, markup)
	doc, err := html.Parse(small)
	if err != nil {
		return t, fmt.Errorf("main text of %q: %w", url, err)
	}
	clean(doc)
	paragraphs(doc)
	mark(doc)
	t = readHead(doc, now)
	if t.Published == "" {
		t.Published = findDate(doc, url, now)
	}
	if t.Author == "" {
		t.Author = findAuthor(doc)
	}
	base := baseOf(doc, url)
	found := t.readArticle(doc, url)
	if markup {
		t.Text = markdown(found, t.Text, base)
	}
	if tooLarge != nil {
		return t, fmt.Errorf("main text of %q: %w", url, tooLarge)
	}
	return t, nil
}
