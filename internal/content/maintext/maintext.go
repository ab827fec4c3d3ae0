// Package maintext extracts the main text, comments, headline, author, publication date and kind of a page.
//
// The main text excludes menus, advertisements, comments and footers. A page is parsed once, by package tree. One pass
// over the nodes in document order computes sums of letters, of letters in links and of prose, with which the weight of
// a subtree takes constant time. So an extraction takes time linear in the page, except for Markdown:
//
//   - Kind. Declared types, the generator, names and structure decide what kind of page it is: an article, a thread, a
//     product, a listing, documentation, a service (parts that present an offer), or another.
//   - Scope. The main text is in the article or the main part that the page declares. Otherwise it is in the innermost
//     element with most of the good passages: long enough, and mostly not in links (Kohlschütter, Fankhauser, Nejdl,
//     "Boilerplate Detection using Shallow Text Features", WSDM 2010). Letters are weighted by script, because Chinese
//     needs a third as many characters for the same content.
//   - Asides. Elements whose tag, role, class or id says that they are not main text are excluded, unless they have
//     most of the page's text. So are lists of links with short labels, as in menus. Documentation keeps all its lists,
//     tables keep all their rows, and threads keep all posts. Of posts, only the bodies are text: the elements of the
//     class that has nearly all good passages and the least other text. Products exclude lists of other products.
//   - Comments of readers and reviews of customers are a field of their own, found in asides in the same way as posts.
//   - Fallbacks. A page with visible text always has a main text: at last its menus, its asides, or elements that
//     scripts would display.
//   - Lines. The text has one line per paragraph, with tabs between the cells of a row. Code samples keep their lines
//     and indentation. No space is inserted where inline markup splits a word, which matters in scripts without spaces.
//   - Dates and authors. The declared publication date comes first; a modification date is not used in its place. Dates
//     are parsed in some thirty languages. Comments, asides and footers are not searched.
//
// docs/decisions/maintext.md compares the package with other libraries.
package maintext

import (
	"bytes"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"kumo/internal/content/lang"
)

// Limits of the part of a page that is read.
const (
	maxBody  = 16 << 20 // bytes of the page
	maxNodes = 200_000  // elements and texts
	maxText  = 4 << 20  // bytes of the main text
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
	Kind      string // article, forum, product, listing, documentation, service or other; "" without text
	Comments  string // of readers or customers below the text, one line per paragraph; posts of a forum are in Text
}

// Extract extracts the text of an HTML page in UTF-8; invalid bytes are read as U+FFFD. The url is the URL of the page,
// which may contain its date; "" if unknown. For a page without main text, Text.Text is empty and there is no error.
//
// Extract reads at most 16 MiB of a body and 200,000 elements and texts, and returns at most 4 MiB of text. If a page
// exceeds this, Extract returns the text up to there with an ErrTooLarge that contains the limit.
//
// Extract is safe for concurrent use.
func Extract(body []byte, url string) (Text, error) { return extract(body, url, time.Now()) }

// Language returns the language of the main text; see [lang.Of].
func (t *Text) Language() string { return lang.Of(t.Text, t.Lang) }

// ExtractMarkdown is like Extract, but returns the main text in Markdown (CommonMark with GitHub tables): headings,
// lists, quotes, tables, code, links, emphasis, and images by their URLs. Markdown syntax in the page's text is
// escaped. It converts at most 60,000 elements and texts, and 1 MiB of text. The charset is the page's original one, in
// which the queries of its links are encoded; "" for UTF-8.
func ExtractMarkdown(body []byte, url, charset string) (Text, error) {
	return read(body, url, time.Now(), &charset)
}

// extract is Extract at a given time; later publication dates are implausible.
func extract(body []byte, url string, now time.Time) (Text, error) {
	return read(body, url, now, nil)
}

func read(body []byte, page string, now time.Time, markdown *string) (t Text, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("main text of %q: %w: %v", page, ErrPanic, p)
		}
	}()
	d := documents.Get().(*document) // after a panic it is not reused
	err = d.read(&t, body, page, now, markdown)
	d.release()
	if err != nil {
		return t, fmt.Errorf("main text of %q: %w", page, err)
	}
	return t, nil
}

// read extracts a text; in Markdown if markdown is set, which is the original charset.
func (d *document) read(t *Text, body []byte, page string, now time.Time, markdown *string) error {
	tooLarge := d.load(body)
	d.scan()
	h := d.readHead()
	c := classifier{document: d, head: &h, page: page}
	k := c.declared()
	d.markAsides(k)
	d.sumPassages()
	found := d.findFacts(now, h.monthFirst())
	h.facts(t, &found, page, now)
	c.dated = t.Author != "" && t.Published != ""
	k = c.kindOf(k)
	h.restrict(t, k, &found, page, now)
	d.readText(t, &c, k, textOfData(h.dataText))
	if t.Text != "" {
		t.Kind = k.String()
	}
	if tooLarge == nil && d.out.full {
		tooLarge = fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText)
	}
	if markdown != nil && t.Text != "" {
		markup, whole := d.markdown(t.Text, restorer{baseOf(d, page), *markdown})
		t.Text = markup
		if tooLarge == nil && !whole {
			tooLarge = fmt.Errorf("%w: more than %d elements or %d bytes of text for Markdown", ErrTooLarge, maxCopies,
				maxCopied)
		}
	}
	if t.Text != "" && k != thread {
		t.Comments = d.comments()
	}
	return tooLarge
}

// load parses a body up to the limits.
func (d *document) load(body []byte) error {
	whole := len(body)
	body = body[:min(whole, maxBody)]
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	d.parse(string(body))
	switch {
	case d.tree.Cut:
		return fmt.Errorf("%w: more than %d elements and texts", ErrTooLarge, maxNodes)
	case whole > maxBody:
		return fmt.Errorf("%w: %d bytes, %d are read", ErrTooLarge, whole, maxBody)
	}
	return nil
}
