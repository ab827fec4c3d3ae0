// Package maintext finds what a page is about: its main text without menus, advertisements, comments and footers, its
// headline, its author and the day it was published. The article is found by the go-readability library, which follows
// Mozilla's Readability.js line by line; the package stands around it and adds seven things:
//
//   - Bounds. The library takes no context and has steps that grow with the square of a page, so a page is thinned before it
//     gets there: scripts, styles, comments, images, inline markup and spans that only style their text go, and the
//     constants below say how much of the rest stays. What lies beyond is left unread. A panic in the library becomes an error.
//   - Asides. What says by its element, role, class or id that it is not the main text goes before, and lists of links go after,
//     unless most of the page's prose is there.
//   - Measure. The library counts characters, which is right for Latin letters; a Chinese page says as much in a third of them.
//     Here letters are weighed by script.
//   - Short pages and forums. Of a thread the library takes one post. A plain classifier of blocks by length and share of links
//     steps in where it finds little, or less than half of what the classifier finds (Kohlschütter, Fankhauser, Nejdl:
//     "Boilerplate Detection using Shallow Text Features", WSDM 2010; two of its features, with thresholds in letters instead of
//     words). No line comes oftener than on the page, and a page of links only has no text: its words are the names of other
//     pages.
//   - Layout. Tables that lay out a page are read as divs, prose that stands bare or between line breaks as paragraphs, and the
//     element that holds most of the paragraphs is marked as the article where nothing says so.
//   - Lines. The text keeps one line a paragraph, code samples keep their lines and indentation, and no space is put where
//     inline markup splits a word, which matters in scripts without spaces.
//   - Days and authors. What a page declares as its day of publication comes first, a change is not taken for it, and days are
//     read as they are written in some thirty languages.
//
// An ordinary page costs one or two milliseconds, so this stays off the path of fetching. docs/decisions/maintext.md
// compares it with other libraries.
package maintext

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/html"
)

// What is read of a page.
const (
	maxBody  = 16 << 20 // bytes looked at
	maxToken = 4 << 20  // bytes of a tag, text, script or comment; a longer one ends the page
	maxThin  = 1 << 20  // bytes kept after thinning
	maxTags  = 30_000   // tags kept
	maxTag   = 2 << 10  // bytes of a tag; a longer one loses its attributes
	maxDepth = 64       // elements open at once, not counting those that close by themselves; deeper ones are unwrapped
	maxField = 1 << 10  // bytes of a title, headline or author
)

// ErrTooLarge is the error of a page with more to it than is read.
var ErrTooLarge = errors.New("page too large")

// ErrPanic is the error of a page on which a library panicked.
var ErrPanic = errors.New("library panicked")

// Text is what a page says. A field is "" where the page has none.
type Text struct {
	Title    string // the title element, white space collapsed, at most 1 KiB
	Headline string // the article's own heading, without the site's name
	// the main text below the headline, a line for each paragraph, subheading, list item or row; tabs between cells; pre
	// as it is
	Text      string
	Published string // RFC 3339 where the page gives time and zone, otherwise a date, 2006-01-02; never before 1995
	Author    string // as the page writes it; several are separated by "; "
	Lang      string // the language that the page declares, a canonical BCP 47 tag; not guessed from the text
}

// Extract reads an HTML page in UTF-8; invalid bytes are read as U+FFFD. The url is the page's own, "" if not known: it
// may name the date. A page without main text gives an empty Text.Text and no error.
//
// Read are at most 16 MiB of a body, and of these 1 MiB or 30,000 tags once scripts, styles and inline markup are left
// out. A page that has more, or a tag, script or stretch of text over 4 MiB, gives what was read up to there with an
// ErrTooLarge that says which bound it was. Elements more than 64 deep lose their tags, but not their text.
//
// Extract keeps no state and may be called from any number of goroutines.
func Extract(body []byte, url string) (Text, error) {
	return extract(body, url, time.Now())
}

// ExtractMarkdown is Extract with the main text in Markdown (CommonMark, and tables as GitHub has them): headings,
// lists, quotes, tables, code, links, emphasis, and images by their URLs. What in the page's words would be markup is
// escaped.
func ExtractMarkdown(body []byte, url string) (Text, error) {
	return read(body, url, time.Now(), true)
}

// extract takes the time because no page was published after it was read.
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
