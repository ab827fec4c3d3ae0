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

	"kumo/internal/base/page"
)

// A Record has the data of a URL's newest response, as in pages.jsonl, text.jsonl and fields.jsonl. Texts that are too
// long for a server are cut, and Cut is set.
type Record struct {
	URL         string    `json:"url"`
	Status      int       `json:"status"`
	Time        time.Time `json:"time"` // of the visit, in whole seconds, in UTC; also the version of the record
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
	Depth       int       `json:"depth"` // -1 if unknown
	NoIndex     bool      `json:"noindex,omitempty"`
	ServerIP    string    `json:"server_ip,omitempty"` // address of the server that answered
	Headline    string    `json:"headline,omitempty"`
	Author      string    `json:"author,omitempty"`
	Published   string    `json:"published,omitempty"`
	Kind        string    `json:"kind,omitempty"`     // of page: article, forum, product, …
	Text        string    `json:"text,omitempty"`     // the main text
	Comments    string    `json:"comments,omitempty"` // of readers or customers
	Fields      []Fields  `json:"fields,omitempty"`   // extracted from the page by rules
	Cut         bool      `json:"cut,omitempty"`      // a text or fields were cut
	// the usage preferences of the page when it was fetched; nil if it had none. Shared with the page
	Usage *page.Usage `json:"usage,omitempty"`
	// Rules are the field rules that apply to the URL; nil: unknown. Only sinks with a column for each field use them.
	Rules []page.FieldRule `json:"-"`
	// Line is the offset of the page's line in pages.jsonl. Only local sinks use it.
	Line int64 `json:"-"`
}

// Fields are a record that a rule extracted from a page.
type Fields struct {
	Rule   string          `json:"rule"`
	Values json.RawMessage `json:"values"` // JSON object
}

// Limits of a record, so that it fits into one message of any server with default settings.
const (
	MaxText     = 256 << 10 // bytes of the main text
	MaxComments = 32 << 10  // bytes of the comments
	MaxFields   = 128 << 10 // bytes of all fields
	maxWord     = 8 << 10   // bytes of any other text
	maxID       = 512       // bytes; limit of OpenSearch
)

// ID returns an identifier of limited length: the URL, or for a long one a prefix and its SHA-256.
func (r *Record) ID() string { return ID(r.URL) }

// ID returns the identifier of a URL's record.
func ID(url string) string {
	if len(url) <= maxID {
		return url
	}
	sum := sha256.Sum256([]byte(url))
	return strings.ToValidUTF8(url[:maxID-80], "") + "#sha256:" + hex.EncodeToString(sum[:])
}

// Fit converts the record to a form that every server accepts: time in whole seconds, texts valid UTF-8 without control
// characters and within the limits.
func (r *Record) Fit() {
	r.Time = r.Time.UTC().Truncate(time.Second)
	for _, s := range []*string{&r.Type, &r.Charset, &r.Lang, &r.Title, &r.H1, &r.Description, &r.Canonical, &r.Digest,
		&r.Truncated, &r.Host, &r.Headline, &r.Author, &r.Published, &r.Kind} {
		r.fit(s, maxWord)
	}
	r.fit(&r.Text, MaxText)
	r.fit(&r.Comments, MaxComments)
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
	if strings.IndexFunc(*s, isControl) >= 0 { // databases reject them, and JSON needs six bytes for each
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

// Size returns the approximate size of the record in bytes.
func (r *Record) Size() int {
	n := 512 + usageSize(r.Usage) + len(r.URL) + len(r.Title) + len(r.H1) + len(r.Description) + len(r.Canonical) + len(r.Headline) +
		len(r.Text)
	for i := range r.Fields {
		n += len(r.Fields[i].Rule) + len(r.Fields[i].Values)
	}
	return n
}

func usageSize(u *page.Usage) int {
	if u == nil {
		return 0
	}
	return 100 + len(u.Policy) + len(u.License) + len(u.Source) + len(u.Raw)
}

// A Sink is a connection to a server that stores records, whose table, topic or index exists. It is not safe for
// concurrent use.
type Sink interface {
	// Put stores a batch of records, to which Fit was applied. When it returns nil, all of them are stored durably,
	// each once. After an error some may be stored; the batch can be put again.
	Put(ctx context.Context, batch []Record) error
	// Flush makes the records visible to readers of the server.
	Flush(ctx context.Context) error
	// Close closes the connection.
	Close() error
}

// ErrDataLost means that a sink has lost its content: all records must be sent again.
var ErrDataLost = errors.New("the sink's content was lost")

// A Lister is a Sink that can list its records.
type Lister interface {
	// Each calls f with the URL and the version of all records that were put and flushed, in any order. It may call f
	// several times for a URL of which several versions are stored.
	Each(ctx context.Context, f func(url string, version time.Time) error) error
}

// An Attempt is one call of Put. It may have failed because the sink was unreachable.
type Attempt struct {
	Sink       string // its name; has no password
	Batch      []Record
	Begin, End time.Time
	Err        error
}

// Limits of a batch.
const (
	BatchRecords = 500
	BatchBytes   = 4 << 20
)

// Newest returns the batch without older records of the same URL. Of equally old ones it keeps the last. The result
// keeps the order of the first records.
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
