// Package sink defines the records that a crawl sends to external servers, and the interface that each kind of server
// implements.
//
// The ID of a record is its URL. A sink that receives a record twice stores it once. If the server supports it, an
// older record never replaces a newer one; the time of the visit decides. So a sender can safely repeat a record whose
// delivery it could not confirm.
//
// Delivery is at least once: [Sink.Put] returns nil when the server has stored the batch durably. After an error the
// sender sends the batch again ([Retry]).
package sink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Record is what a crawl knows of a URL's newest answer. Its members are those of pages.jsonl, text.jsonl and
// fields.jsonl. What is too long for a server is cut, and Cut says so.
type Record struct {
	URL         string    `json:"url"`
	Status      int       `json:"status"`
	Time        time.Time `json:"time"` // of the visit, in whole seconds, in UTC: the record's version
	Type        string    `json:"type,omitempty"`
	Charset     string    `json:"charset,omitempty"`
	Lang        string    `json:"lang,omitempty"`
	Title       string    `json:"title,omitempty"`
	H1          string    `json:"h1,omitempty"`
	Description string    `json:"description,omitempty"`
	Canonical   string    `json:"canonical,omitempty"`
	Bytes       int64     `json:"bytes"`
	Digest      string    `json:"digest"`
	Links       int       `json:"links"`
	Truncated   string    `json:"truncated,omitempty"`
	Host        string    `json:"host"`
	Depth       int       `json:"depth"` // -1 if it is not known
	NoIndex     bool      `json:"noindex,omitempty"`
	Headline    string    `json:"headline,omitempty"`
	Author      string    `json:"author,omitempty"`
	Published   string    `json:"published,omitempty"`
	Text        string    `json:"text,omitempty"`   // the main text
	Fields      []Fields  `json:"fields,omitempty"` // that rules have made of the page
	Cut         bool      `json:"cut,omitempty"`    // a text or fields were longer than a record can have
	// where its line begins in pages.jsonl; of a sink on this machine alone
	Line int64 `json:"-"`
}

// Fields are a record that a rule has made of a page.
type Fields struct {
	Rule   string          `json:"rule"`
	Values json.RawMessage `json:"values"` // an object
}

// What a record has at most, so that it goes into one message of any server as these are set up by default.
const (
	MaxText   = 256 << 10 // bytes of the main text
	MaxFields = 128 << 10 // bytes of all fields
	maxWord   = 8 << 10   // bytes of each other text
	maxID     = 512       // bytes, which is OpenSearch's limit
)

// ID is what the record is called where a name's length is limited: its URL, or of a long one a part and its SHA-256.
func (r *Record) ID() string { return ID(r.URL) }

// ID is what a URL's record is called.
func ID(url string) string {
	if len(url) <= maxID {
		return url
	}
	sum := sha256.Sum256([]byte(url))
	return strings.ToValidUTF8(url[:maxID-80], "") + "#sha256:" + hex.EncodeToString(sum[:])
}

// Fit makes the record one that every server takes: its time in whole seconds, its texts valid UTF-8 without
// control characters, and no longer than a record can have.
func (r *Record) Fit() {
	r.Time = r.Time.UTC().Truncate(time.Second)
	for _, s := range []*string{&r.Type, &r.Charset, &r.Lang, &r.Title, &r.H1, &r.Description, &r.Canonical, &r.Digest,
		&r.Truncated, &r.Host, &r.Headline, &r.Author, &r.Published} {
		r.fit(s, maxWord)
	}
	r.fit(&r.Text, MaxText)
	size := 0
	for i := range r.Fields {
		f := &r.Fields[i]
		if size += len(f.Rule) + len(f.Values); size > MaxFields {
			r.Fields, r.Cut = r.Fields[:i], true
			return
		}
		if strings.Contains(string(f.Values), `\u0000`) {
			f.Values = json.RawMessage(strings.ReplaceAll(string(f.Values), `\u0000`, `\ufffd`))
		}
	}
}

func (r *Record) fit(s *string, most int) {
	*s = strings.ToValidUTF8(*s, "\uFFFD")
	if strings.IndexFunc(*s, isControl) >= 0 { // which no database wants, or JSON has in six bytes
		*s = strings.Map(func(c rune) rune {
			if isControl(c) {
				return ' '
			}
			return c
		}, *s)
	}
	if len(*s) > most {
		end := most
		for !utf8.RuneStart((*s)[end]) {
			end--
		}
		*s, r.Cut = (*s)[:end], true
	}
}

func isControl(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }

// Size is about how many bytes the record has.
func (r *Record) Size() int {
	n := 512 + len(r.URL) + len(r.Title) + len(r.H1) + len(r.Description) + len(r.Canonical) + len(r.Headline) +
		len(r.Text)
	for i := range r.Fields {
		n += len(r.Fields[i].Rule) + len(r.Fields[i].Values)
	}
	return n
}

// A Sink is a server that takes records, reached and ready for them: what they go into is there, or was made. One
// goroutine uses it.
type Sink interface {
	// Put hands over a batch whose records were made to Fit. When it returns nil, the server has all of them for good,
	// each once. After an error some may be there; the batch may be put again.
	Put(ctx context.Context, batch []Record) error
	// Flush makes visible to who asks the server what was put.
	Flush(ctx context.Context) error
	// Close lets go of the server.
	Close() error
}

// ErrDataLost is what a sink says that has lost what it had: all is to be sent again, from the beginning.
var ErrDataLost = errors.New("what was there is lost")

// A Lister is a Sink that can say what it has.
type Lister interface {
	// Each calls f with the URL and the version of all records that were put and flushed, in any order. One that is kept
	// in several versions may come several times.
	Each(ctx context.Context, f func(url string, version time.Time) error) error
}

// Batch bounds what is put at once.
const (
	BatchRecords = 500
	BatchBytes   = 4 << 20
)

// Newest leaves of the records with one id the newest, the last of equals, where its first one was.
func Newest(batch []Record) []Record {
	at := make(map[string]int, len(batch))
	some := make([]Record, 0, len(batch))
	for i := range batch {
		r := &batch[i]
		n, is := at[r.URL]
		switch {
		case !is:
			at[r.URL] = len(some)
			some = append(some, *r)
		case !r.Time.Before(some[n].Time):
			some[n] = *r
		}
	}
	return some
}
