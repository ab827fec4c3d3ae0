package lookup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"kumo/internal/archive/export/captures"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/document"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/state/store"
	"kumo/internal/state/store/warc"
)

// MaxBody is the number of bytes of a body that are read.
const MaxBody = 16 << 20

// ErrNoAnswer means that a record has no response, or that its WARC file is not available.
var ErrNoAnswer = errors.New("the archive has no response for it")

// Answer reads a record's response.
func (a *Archive) Answer(ctx context.Context, r *Record) (*page.Response, error) {
	if r.Status == 0 || r.WARC == "" {
		return nil, ErrNoAnswer
	}
	resp, _, err := a.documentAt(ctx, r.URL, r.Status, captures.Location{File: r.WARC, Offset: r.Offset}, r.Revisit != "")
	return resp, err
}

// Document reads the document of a record, to be parsed: for a rendered page that after its scripts, for a PDF and the
// like its HTML form, otherwise the response.
func (a *Archive) Document(ctx context.Context, r *Record) (*page.Response, error) {
	if r.Status == 0 || r.WARC == "" {
		return nil, ErrNoAnswer
	}
	_, doc, err := a.documentAt(ctx, r.URL, r.Status, captures.Location{File: r.WARC, Offset: r.Offset}, r.Revisit != "")
	return doc, err
}

// AnswerOf reads the newest good response of a URL; ErrNoAnswer if there is none.
func (a *Archive) AnswerOf(ctx context.Context, url string) (*page.Response, error) {
	resp, _, err := a.newestOf(ctx, url)
	return resp, err
}

// DocumentOf is AnswerOf with the document to be parsed, as Document returns it.
func (a *Archive) DocumentOf(ctx context.Context, url string) (*page.Response, error) {
	_, doc, err := a.newestOf(ctx, url)
	return doc, err
}

func (a *Archive) newestOf(ctx context.Context, url string) (resp, doc *page.Response, err error) {
	x, err := a.find(ctx, url, "")
	if err != nil {
		return nil, nil, err
	}
	if x == nil {
		return nil, nil, ErrNoAnswer
	}
	return a.documentAt(ctx, url, x.Status, captures.Location{File: x.File, Offset: x.Offset}, x.MIME == revisit)
}

func (a *Archive) documentAt(ctx context.Context, url string, status int, at captures.Location,
	revisits bool) (resp, doc *page.Response, err error) {
	c := captures.Capture{URL: url, Status: status, Head: at}
	if revisits {
		if c.Body, err = a.original(ctx, url, at); err != nil {
			return nil, nil, err
		}
	}
	return a.read(ctx, &c)
}

// original returns the location of the record that a revisit refers to; nil if it is not available.
func (a *Archive) original(ctx context.Context, url string, at captures.Location) (*captures.Location, error) {
	target, digest := url, ""
	err := a.withSlot(ctx, func() error {
		in, err := a.open(at.File)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		defer in.Close()
		in.SeekTo(at.Offset)
		rec, err := in.Next()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		target, digest = cmp.Or(rec.Fields["WARC-Refers-To-Target-URI"], url), rec.Fields["WARC-Payload-Digest"]
		return nil
	})
	if err != nil || digest == "" {
		return nil, err
	}
	x, err := a.find(ctx, target, digest)
	if err != nil || x == nil {
		return nil, err
	}
	return &captures.Location{File: x.File, Offset: x.Offset}, nil
}

type openWARC struct {
	*warc.Reader
	src vfs.ReaderAt
}

func (o *openWARC) Close() { _ = o.src.Close() } // it is only read

func (a *Archive) open(file string) (*openWARC, error) {
	if strings.ContainsAny(file, `/\`) {
		return nil, fmt.Errorf("%q is not a file name", file)
	}
	name := filepath.Join(a.dir, "warc", file)
	size, err := a.disk.Size(name)
	if err != nil {
		name += openEnding
		if size, err = a.disk.Size(name); err != nil {
			return nil, err
		}
	}
	src, err := a.disk.OpenAt(name)
	if err != nil {
		return nil, err
	}
	in, err := warc.NewSkimmer(src, size, file)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	in.SetLimit(2 * MaxBody)
	return &openWARC{in, src}, nil
}

// withSlot calls f when one of the slots for reading records is free.
func (a *Archive) withSlot(ctx context.Context, f func() error) error {
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Archive) read(ctx context.Context, c *captures.Capture) (resp, doc *page.Response, err error) {
	err = a.withSlot(ctx, func() error {
		in := captures.NewReader(a.disk, a.dir, MaxBody, a.readFunc(ctx))
		defer in.Close() //nolint:errcheck // it only reads
		x, err := in.ReadAnswer(c)
		if err == nil {
			resp, doc = x.Response, x.Shown
		}
		return err
	})
	if _, is := errors.AsType[*captures.RecordError](err); is {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return resp, doc, err
}

// readFunc returns the function that reads documents; nil if they are not read.
func (a *Archive) readFunc(ctx context.Context) document.ReadFunc {
	if a.documents == nil {
		return nil
	}
	return func(f document.File) (*document.Document, error) { return a.documents.Read(ctx, f, document.Default()) }
}

// read parses a response. If a list is malformed or too long, the entries read so far are returned.
func read(resp *page.Response, cfg parse.Config) (pg page.Page, err error) {
	if err = parse.New(cfg).Parse(resp, &pg); err != nil && parse.IsList(pg.Sniffed) {
		err = nil
	}
	return pg, err
}

// Type returns the media type of a response's body, sniffed or declared.
func Type(resp *page.Response) string {
	pg, err := read(resp, parse.Config{MaxLinks: 1})
	if err != nil {
		return ""
	}
	return cmp.Or(pg.Sniffed, pg.Type)
}

// A Link is a link in a response's body or headers.
type Link struct {
	URL      string `json:"url"`
	Kind     string `json:"kind"`
	Rel      string `json:"rel,omitempty"`
	Text     string `json:"text,omitempty"`
	NoFollow bool   `json:"nofollow,omitempty"`
}

// Links returns the first n links of a response, and their total number.
func Links(resp *page.Response, n int) (links []Link, all int, err error) {
	pg, err := read(resp, parse.Config{AnchorText: true})
	if err != nil {
		return nil, 0, err
	}
	for i := range pg.Links[:min(n, len(pg.Links))] {
		l := &pg.Links[i]
		links = append(links, Link{URL: strings.Clone(l.URL), Kind: l.Kind.String(), Rel: l.Rel, Text: l.Text,
			NoFollow: l.NoFollow})
	}
	return links, len(pg.Links), nil
}

// A Text is the text of a response.
type Text struct {
	Title     string `json:"title,omitempty"`
	Headline  string `json:"headline,omitempty"`
	Author    string `json:"author,omitempty"`
	Published string `json:"published,omitempty"`
	Lang      string `json:"lang,omitempty"`
	Kind      string `json:"kind,omitempty"` // of page: article, forum, product, …
	Text      string `json:"text"`
	Comments  string `json:"comments,omitempty"` // of readers or customers
	Main      bool   `json:"main"`               // the main text of an HTML page or a document, not the raw body
	Truncated bool   `json:"truncated"`          // the text or the comments are longer
}

const textBytes = 1 << 20 // maximum size of a returned text, and of comments

// TextOf returns the text of a response: the main text of HTML and of documents, other text verbatim, and none for
// other types.
func TextOf(resp *page.Response) (*Text, error) { return textOf(resp, false) }

// MarkdownOf is TextOf with the main text in Markdown.
func MarkdownOf(resp *page.Response) (*Text, error) { return textOf(resp, true) }

func textOf(resp *page.Response, markdown bool) (*Text, error) {
	pg, err := read(resp, parse.Config{Language: true})
	if err != nil {
		return nil, err
	}
	t := &Text{Title: pg.Title, Lang: pg.Lang}
	kind := cmp.Or(pg.Sniffed, pg.Type)
	switch {
	case resp.Main != nil:
		m := resp.Main
		t.Lang, t.Headline, t.Author, t.Published, t.Kind = m.Lang, m.Headline, m.Author, m.Published, m.Kind
		if t.Text, t.Main = m.Text, true; markdown {
			t.Text = maintext.Markdown(resp.Body, resp.URL)
		}
	case parse.IsHTML(kind):
		// after a limit, the text so far is returned
		charset := cmp.Or(pg.Charset, "utf-8")
		var m maintext.Text
		if body := parse.UTF8(resp.Body, charset); markdown {
			m, _ = maintext.ExtractMarkdown(body, resp.URL, charset)
		} else {
			m, _ = maintext.Extract(body, resp.URL)
		}
		t.Headline, t.Author, t.Published, t.Kind = m.Headline, m.Author, m.Published, m.Kind
		t.Text, t.Comments, t.Main = m.Text, m.Comments, true
	case pg.Charset != "" || IsText(kind):
		t.Text = string(parse.UTF8(resp.Body, cmp.Or(pg.Charset, "utf-8")))
	}
	for _, s := range []*string{&t.Text, &t.Comments} {
		if len(*s) > textBytes {
			*s, t.Truncated = strings.ToValidUTF8((*s)[:textBytes], ""), true
		}
	}
	return t, nil
}

// IsText reports whether a media type is textual.
func IsText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") ||
		strings.HasSuffix(kind, "javascript")
}

const (
	openEnding = ".open"
	revisit    = "warc/revisit" // media type in an index line
)

// find returns the index line of a URL's newest good response or, with a digest, of a record with that body; nil if
// there is none. Indexes of closed files are sorted.
func (a *Archive) find(ctx context.Context, url, digest string) (newest *warc.IndexLine, err error) {
	names, err := a.disk.List(filepath.Join(a.dir, "warc"))
	if err != nil {
		return nil, err
	}
	keys := [][]byte{append([]byte(warc.SURT(url)), ' ')}
	if old := append([]byte(warc.OldKey(url)), ' '); !bytes.Equal(old, keys[0]) {
		keys = append(keys, old)
	}
	take := func(line []byte) {
		x, err := warc.ParseIndexLine(line)
		if err != nil || x.URL != url {
			return
		}
		if digest != "" && (x.Digest != digest || x.MIME == revisit) {
			return
		}
		if digest == "" && (x.Status < 100 || x.Status >= 500 || x.Status == 429) {
			return
		}
		if newest == nil || !x.Time.Before(newest.Time) {
			newest = &x
		}
	}
	for _, name := range names {
		final, open := strings.CutSuffix(name, openEnding)
		if !strings.HasSuffix(final, ".cdxj") {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		file := filepath.Join(a.dir, "warc", name)
		if open {
			_, err = store.EachLineOf(a.disk, file, func(line []byte, _ int64) error {
				if slices.ContainsFunc(keys, func(key []byte) bool { return bytes.HasPrefix(line, key) }) {
					take(line)
				}
				return nil
			})
		} else {
			for _, key := range keys {
				err = errors.Join(err, a.search(file, key, take))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read warc/%s: %w", name, err)
		}
	}
	return newest, nil
}

// search calls f with the lines of a sorted file that begin with key.
func (a *Archive) search(file string, key []byte, f func(line []byte)) error {
	size, err := a.disk.Size(file)
	if err != nil {
		return err
	}
	src, err := a.disk.OpenAt(file)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // it is only read
	// The first block whose first complete line is not before the key.
	blocks := int((size + searchStep - 1) / searchStep)
	var failed error
	at := sort.Search(blocks, func(i int) bool {
		line, _, err := lineAfter(src, int64(i)*searchStep, size)
		if err != nil {
			failed = err
		}
		return line == nil || bytes.Compare(line, key) >= 0
	})
	if failed != nil {
		return failed
	}
	for pos := int64(max(at-1, 0)) * searchStep; ; {
		line, next, err := lineAfter(src, pos, size)
		if err != nil || line == nil {
			return err
		}
		if bytes.HasPrefix(line, key) {
			f(line)
		} else if bytes.Compare(line, key) > 0 {
			return nil
		}
		pos = next - 1 // position of the newline before the next line
	}
}

const searchStep = 4 << 10

// lineAfter returns the first line that begins after a newline at or after at, or at the beginning of the file, and the
// offset after that line; nil if there is none.
func lineAfter(src vfs.ReaderAt, at, size int64) (line []byte, next int64, err error) {
	for room := int64(searchStep) * 2; ; room *= 4 {
		b := make([]byte, min(room, size-at))
		if _, err := src.ReadAt(b, at); err != nil {
			return nil, 0, err
		}
		begin := 0
		if at > 0 {
			if begin = bytes.IndexByte(b, '\n') + 1; begin == 0 {
				begin = len(b)
			}
		}
		if line, _, ok := bytes.Cut(b[begin:], []byte("\n")); ok {
			return line, at + int64(begin+len(line)) + 1, nil
		}
		if int64(len(b)) == size-at || room > lineBytes {
			return nil, 0, nil
		}
	}
}
