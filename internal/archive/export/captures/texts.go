package captures

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"kumo/internal/base/extsort"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
)

// A TextLine locates the main text of a record in text.jsonl, and identifies the body from which it was extracted.
type TextLine struct {
	At      int64     `json:"at"`
	Length  int64     `json:"length"`            // without the line feed
	Time    time.Time `json:"time"`              // of the visit
	Digest  string    `json:"digest,omitempty"`  // "sha1:BASE32", of the payload
	Charset string    `json:"charset,omitempty"` // charset with which the payload was decoded
	// the text is that of the document after the page's scripts
	Rendered bool `json:"rendered,omitempty"`
}

// A pageLine has the members of a line of pages.jsonl that are used.
type pageLine struct {
	URL       string    `json:"url,omitempty"`
	Depth     int       `json:"depth"`
	Time      time.Time `json:"time,omitzero"`
	WARC      string    `json:"warc,omitempty"`
	Offset    int64     `json:"offset,omitempty"`
	Digest    string    `json:"digest,omitempty"`
	Charset   string    `json:"charset,omitempty"`
	Truncated string    `json:"truncated,omitempty"`
	Malformed string    `json:"malformed,omitempty"`
	Visit
}

// readTexts adds the locations of the texts in text.jsonl to the sorter.
func (a *Archive) readTexts(ctx context.Context, sorter *extsort.Sorter) error {
	var key []byte
	_, err := store.EachLineOf(a.cfg.Texts, filepath.Join(a.cfg.Dir, jsonl.TextsName), func(line []byte, at int64) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		url, visited, ok := visitOf(line)
		if !ok {
			return nil // kumo verify reports it; the text is extracted from the record
		}
		value, err := json.Marshal(&TextLine{At: at, Length: int64(len(line)), Time: visited})
		if err != nil {
			return err
		}
		key = visitKey(key, url, visited)
		return sorter.Add(0, key, append([]byte{textMark}, value...))
	})
	return err
}

// visitOf parses the URL and the time of a line of text.jsonl, which come first, without parsing the text.
func visitOf(line []byte) (url string, visited time.Time, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return "", visited, false
	}
	for d.More() && (url == "" || visited.IsZero()) {
		name, err := d.Token()
		if err != nil {
			return "", visited, false
		}
		var into any = new(json.RawMessage)
		switch name {
		case "url":
			into = &url
		case "time":
			into = &visited
		}
		if err := d.Decode(into); err != nil {
			return "", visited, false
		}
	}
	return url, visited, url != "" && !visited.IsZero()
}

// addLine adds a line of pages.jsonl or text.jsonl in the sorter's form.
func (g *group) addLine(line []byte) error {
	if line[0] == textMark {
		var t TextLine
		if err := json.Unmarshal(line[1:], &t); err != nil {
			return err
		}
		g.texts = appendNewest(g.texts, t)
		return nil
	}
	var p pageLine
	if err := json.Unmarshal(line[1:], &p); err != nil {
		return err
	}
	g.depth, g.visit, g.rendered = p.Depth, &p.Visit, g.rendered || p.Rendered
	if p.WARC != "" {
		g.pages = appendNewest(g.pages, p)
	}
	return nil
}

// appendNewest appends x, and drops the oldest elements beyond maxAnswers.
func appendNewest[T any](all []T, x T) []T {
	if len(all) == maxAnswers {
		all = append(all[:0], all[1:]...)
	}
	return append(all, x)
}

// textOf returns the text.jsonl line of the visit whose record is at a location. It returns nil if the visit has none
// or several, or if its body is incomplete.
func (g *group) textOf(at Location) (found *TextLine) {
	for i := range g.pages {
		p := &g.pages[i]
		if p.WARC != at.File || p.Offset != at.Offset {
			continue
		}
		if p.Truncated != "" || p.Malformed != "" {
			return nil
		}
		for _, t := range g.texts {
			if !t.Time.Equal(p.Time) {
				continue
			}
			if found != nil {
				return nil
			}
			t.Digest, t.Charset, t.Rendered = p.Digest, p.Charset, p.Rendered
			found = &t
		}
		return found
	}
	return nil
}

// A textReader reads lines of text.jsonl.
type textReader struct {
	disk vfs.FS // nil: there is no text.jsonl
	dir  string
	src  vfs.ReaderAt // opened on first use
}

func (t *textReader) close() error {
	if t.src == nil {
		return nil
	}
	src := t.src
	t.src = nil
	return src.Close()
}

// maxStoredTextBody is the longest body that every crawl reads completely for its main text, however little memory it
// has.
const maxStoredTextBody = 2 << 20

// Text returns the main text that the crawl extracted from an answer, whose charset is that of its Shown response. It
// returns nil if there is none, or if the text may be that of another body: the payload's SHA-1 and the charset must
// match.
func (r *Reader) Text(c *Capture, a *Answer, charset string) (*page.MainText, error) {
	rendered := a.Document == nil && a.Shown != a.Response
	if a.Document != nil {
		charset = "" // as pages.jsonl has it
	}
	if c.Text == nil || r.texts.disk == nil || charset != c.Text.Charset || len(a.Shown.Body) > maxStoredTextBody ||
		a.Truncated != page.Whole || a.Malformed != "" || c.Text.Rendered != rendered {
		return nil, nil
	}
	sum := sha1.Sum(a.Payload)
	if c.Text.Digest != "sha1:"+base32.StdEncoding.EncodeToString(sum[:]) {
		return nil, nil
	}
	line, err := r.texts.read(c.Text)
	if line == nil || err != nil {
		return nil, err
	}
	var t struct {
		URL, Lang, Title, Headline, Author, Published, Kind, Text, Comments string
		Time                                                                time.Time
	}
	if err := json.Unmarshal(line, &t); err != nil || t.URL != c.URL || !t.Time.Equal(c.Text.Time) || t.Text == "" {
		return nil, nil //nolint:nilerr // kumo verify reports it; the text is made of the record
	}
	return &page.MainText{Title: t.Title, Headline: t.Headline, Author: t.Author, Text: t.Text, Published: t.Published,
		Lang: t.Lang, Kind: t.Kind, Comments: t.Comments}, nil
}

// read returns a line; nil if the file is missing or too short.
func (t *textReader) read(at *TextLine) ([]byte, error) {
	if t.src == nil {
		src, err := t.disk.OpenAt(filepath.Join(t.dir, jsonl.TextsName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		t.src = src
	}
	line := make([]byte, at.Length)
	_, err := t.src.ReadAt(line, at.At)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s at byte %d: %w", jsonl.TextsName, at.At, err)
	}
	return line, nil
}
