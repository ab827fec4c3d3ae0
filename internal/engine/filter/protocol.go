package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Version is the version of the protocol.
const Version = 1

// The points at which a program is asked.
const (
	Link    = "link"    // a link was found
	Request = "request" // a URL is about to be fetched
	Record  = "record"  // a page was answered
)

// Points lists them.
var Points = []string{Link, Request, Record}

// Further data about records that a program may request.
const (
	WantHeader = "header" // the answer's header fields
	WantHTML   = "html"   // the page, as text
	WantText   = "text"   // its main text, if the crawl extracts it
	WantBody   = "body"   // the body of any type, without content coding
)

// Wants lists them.
var Wants = []string{WantHeader, WantHTML, WantText, WantBody}

// Limits of a program's output.
const (
	MaxLine   = 1 << 20  // bytes of an answer
	MaxReason = 300      // bytes of a reason
	MaxFields = 64 << 10 // bytes of a record's fields
	MaxText   = 900_000  // bytes of a record's title and text
	MaxLinks  = 10_000   // links of a record
	MaxHeard  = 500      // bytes of a line for the log
	maxRank   = 1 << 20  // the minimum is its inverse
	maxQuoted = 200      // bytes quoted from an invalid line
)

// A Hello is the first line that a program reads.
type Hello struct {
	Kumo    string `json:"kumo"` // "filter"
	Version int    `json:"version"`
	Crawl   string `json:"crawl"` // name of the crawl
}

// A Choice is the first line that a program writes: what it wants to be asked.
type Choice struct {
	Points []string `json:"points"`
	Want   []string `json:"want"` // further data about records
}

// Asks reports whether the program wants to be asked at a point.
func (c *Choice) Asks(point string) bool { return slices.Contains(c.Points, point) }

// Wants reports whether the program requests some data about records.
func (c *Choice) Wants(what string) bool { return slices.Contains(c.Want, what) }

// A Question is one question to a program, without its id.
type Question struct {
	Point   string `json:"point"`
	URL     string `json:"url"`
	From    string `json:"from,omitempty"` // the page with the link
	Depth   int    `json:"depth"`          // hops of the URL from a seed
	Element string `json:"element,omitempty"`
	Text    string `json:"text,omitempty"` // anchor text of a link, or main text of a record's page
	Rel     string `json:"rel,omitempty"`
	*Page
}

// A Page is the data about a record.
type Page struct {
	Final   string              `json:"final,omitempty"` // target of a redirect
	Status  int                 `json:"status"`
	Time    string              `json:"time"`
	Type    string              `json:"type"`
	Charset string              `json:"charset,omitempty"`
	Lang    string              `json:"lang,omitempty"`
	Title   string              `json:"title,omitempty"`
	Bytes   int64               `json:"bytes"` // of the payload
	Links   int                 `json:"links"`
	Header  map[string][]string `json:"header,omitempty"`
	HTML    string              `json:"html,omitempty"`
	Cut     bool                `json:"cut,omitempty"` // html is only the beginning of the page
	// Body is a short body, in base64. A longer one is in a temporary file, which is deleted after the answer.
	Body     []byte `json:"body,omitempty"`
	BodyFile string `json:"body_file,omitempty"`
	BodyCut  bool   `json:"body_cut,omitempty"` // the body is only its beginning
	// BodyError is why there is no body although it is wanted, such as a full disk.
	BodyError string `json:"body_error,omitempty"`
}

// An Answer is a program's answer. The zero value means yes.
type Answer struct {
	Drop   string            // reason to drop; "" for yes
	URL    string            // of a link: replaces its URL; "": unchanged
	Rank   float64           // of a link: factor of its importance; 0: unchanged
	Header map[string]string // of a request: additional header fields
	Fields json.RawMessage   // of a record: an object in one line
	Title  string            // of a record: replaces its title
	Text   string            // of a record: replaces its main text
	Links  []string          // of a record: further links, absolute or relative to the page
}

// Changes reports whether the answer changes something.
func (a *Answer) Changes() bool {
	return a.URL != "" || a.Rank != 0 || a.Header != nil || a.Fields != nil || a.hasContent()
}

// hasContent reports whether the answer has a title, a text or links.
func (a *Answer) hasContent() bool { return a.Title != "" || a.Text != "" || a.Links != nil }

// encode returns the part of a question's line after its id.
func (q *Question) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(q)
	return b.Bytes()[min(1, b.Len()):], err // without the opening brace
}

// parseChoice parses a program's first line.
func parseChoice(line []byte) (c Choice, err error) {
	if err := unmarshal(line, &c); err != nil {
		return c, fmt.Errorf(`the first line is not like {"points":["link"]}: %w: %s`, err, quoted(line))
	}
	for _, p := range c.Points {
		if !slices.Contains(Points, p) {
			return c, fmt.Errorf("unknown point %s: use %s", quoted([]byte(p)), strings.Join(Points, ", "))
		}
	}
	for _, w := range c.Want {
		if !slices.Contains(Wants, w) {
			return c, fmt.Errorf("unknown data in want: %s: use %s", quoted([]byte(w)), strings.Join(Wants, ", "))
		}
	}
	if len(c.Points) == 0 {
		return c, errors.New("it chooses no point")
	}
	return c, nil
}

// reply is the JSON form of an answer.
type reply struct {
	ID     *uint64           `json:"id"`
	Drop   json.RawMessage   `json:"drop"`
	URL    string            `json:"url"`
	Rank   *float64          `json:"rank"`
	Header map[string]string `json:"header"`
	Fields json.RawMessage   `json:"fields"`
	Title  string            `json:"title"`
	Text   string            `json:"text"`
	Links  []string          `json:"links"`
}

// parseReply parses an answer, and returns the id of its question.
func parseReply(line []byte) (id uint64, a Answer, err error) {
	if id, is := parsePlainYes(line); is {
		return id, a, nil
	}
	var r reply
	if err := unmarshal(line, &r); err != nil {
		return 0, a, fmt.Errorf("%w: %s", err, quoted(line))
	}
	if r.ID == nil {
		return 0, a, fmt.Errorf("answer without an id: %s", quoted(line))
	}
	a, err = r.answer()
	return *r.ID, a, err
}

// answer converts the reply.
func (r *reply) answer() (a Answer, err error) {
	a = Answer{URL: r.URL, Header: r.Header, Title: r.Title, Text: r.Text, Links: r.Links}
	switch {
	case len(r.Title)+len(r.Text) > MaxText:
		return a, fmt.Errorf("title and text have %d bytes, the limit is %d", len(r.Title)+len(r.Text), MaxText)
	case len(r.Links) > MaxLinks:
		return a, fmt.Errorf("there are %d links, the limit is %d", len(r.Links), MaxLinks)
	}
	if a.Drop, err = parseDrop(r.Drop); err != nil {
		return a, err
	}
	if r.Rank != nil {
		if a.Rank = *r.Rank; !(a.Rank >= 1.0/maxRank && a.Rank <= maxRank) {
			return a, fmt.Errorf("rank is %v: it must be a factor above 0", a.Rank)
		}
	}
	if len(r.Fields) > 0 && !bytes.Equal(r.Fields, []byte("null")) {
		a.Fields, err = parseFields(r.Fields)
	}
	return a, err
}

// ParseAnswer parses an answer without an id to a question at a point.
func ParseAnswer(point string, line []byte) (a Answer, err error) {
	var r reply
	if err := unmarshal(line, &r); err != nil {
		return a, fmt.Errorf("%w: %s", err, quoted(line))
	}
	if r.ID != nil {
		return a, errors.New("unexpected id")
	}
	if a, err = r.answer(); err == nil {
		err = a.checkPoint(point)
	}
	return a, err
}

// parsePlainYes is a fast path for answers that consist of an id only, as most do.
func parsePlainYes(line []byte) (id uint64, is bool) {
	rest, is := bytes.CutPrefix(line, []byte(`{"id":`))
	digits, is2 := bytes.CutSuffix(rest, []byte("}"))
	digits = bytes.Trim(digits, " ")
	if !is || !is2 || len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		id = 10*id + uint64(d-'0')
	}
	return id, true
}

// parseDrop parses the reason to drop: a string, or true for no particular reason.
func parseDrop(raw json.RawMessage) (string, error) {
	switch s := string(raw); s {
	case "", "null", "false":
		return "", nil
	case "true", `""`:
		return "dropped", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("drop is not a reason: %s", quoted(raw))
	}
	return Plain(s, MaxReason), nil
}

// parseFields checks and compacts a fields object.
func parseFields(raw json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, err
	}
	switch {
	case b.Len() == 0 || b.Bytes()[0] != '{':
		return nil, fmt.Errorf("fields is not an object: %s", quoted(raw))
	case b.Len() > MaxFields:
		return nil, fmt.Errorf("fields has %d bytes, the limit is %d", b.Len(), MaxFields)
	}
	return bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD")), nil
}

// checkPoint returns an error if an answer has a field that is not allowed at a point.
func (a *Answer) checkPoint(point string) error {
	switch {
	case point != Link && a.URL != "":
		return errors.New("only links can have another url")
	case point != Link && a.Rank != 0:
		return errors.New("only links have a rank")
	case point != Request && a.Header != nil:
		return errors.New("only requests have a header")
	case point != Record && a.Fields != nil:
		return errors.New("only records have fields")
	case point != Record && a.hasContent():
		return errors.New("only records have title, text and links")
	}
	return nil
}

var errNotJSON = errors.New("it is not JSON")

// unmarshal decodes one object. An unknown field is an error: a misspelled one would otherwise mean yes.
func unmarshal(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if _, is := errors.AsType[*json.SyntaxError](err); is || errors.Is(err, io.ErrUnexpectedEOF) {
		return errNotJSON
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one object on a line")
	}
	return nil
}

// quoted quotes the beginning of a line for an error message.
func quoted(line []byte) string {
	return fmt.Sprintf("%q", Plain(string(line[:min(len(line), 4*maxQuoted)]), maxQuoted))
}

// Plain makes foreign text safe to display: in one line, without characters that move the cursor or change the writing
// direction, and of at most most bytes.
func Plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	end := most - len("…")
	for end > 0 && s[end]&0xC0 == 0x80 { // not within a rune
		end--
	}
	return s[:end] + "…"
}
