package feed

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"kumo/internal/base/page"
)

const (
	maxJSON  = 16 << 20 // bytes, since each string is read as a whole
	maxDepth = 100
)

var errDepth = errors.New("nested too deeply")

// json reads a JSON feed (jsonfeed.org), version 1 or 1.1, token by token. Without a version, it is not a feed.
func (s *stream) json() error {
	j := jsonReader{stream: s, in: json.NewDecoder(io.LimitReader(s.in, maxJSON))}
	j.current.entry.Priority = defaultPriority
	for {
		token, err := j.in.Token()
		if errors.Is(err, io.EOF) && len(j.keys) == 0 {
			if !j.feed {
				return ErrFormat
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := j.token(token); err != nil {
			return err
		}
	}
}

// jsonReader is the state of a JSON feed.
type jsonReader struct {
	*stream
	in      *json.Decoder
	keys    []jsonLevel // the open objects and arrays
	feed    bool        // its version was read
	current record
}

// A jsonLevel is an open object or array.
type jsonLevel struct {
	object       bool
	expectsValue bool   // the next token of the object is a value
	key          string // of an object: the last key; of an array: the key whose value it is
}

func (j *jsonReader) token(token json.Token) error {
	top := len(j.keys) - 1
	switch t := token.(type) {
	case json.Delim:
		if t == '}' || t == ']' {
			return j.close()
		}
		if top+1 == maxDepth {
			return errDepth
		}
		level := jsonLevel{object: t == '{'}
		if top >= 0 {
			level.key = j.keys[top].key
			j.keys[top].expectsValue = false
		}
		j.keys = append(j.keys, level)
	case string:
		if top >= 0 && j.keys[top].object && !j.keys[top].expectsValue {
			j.keys[top].key, j.keys[top].expectsValue = t, true
			return nil
		}
		j.endValue()
		return j.value(t)
	default:
		j.endValue()
	}
	return nil
}

// endValue records that an object's key has its value.
func (j *jsonReader) endValue() {
	if top := len(j.keys) - 1; top >= 0 {
		j.keys[top].expectsValue = false
	}
}

// value processes a string by its path. Links of the feed itself are yielded at once.
func (j *jsonReader) value(text string) error {
	var path [5]string
	for i := range min(len(j.keys), len(path)) {
		path[i] = j.keys[i].key
	}
	switch depth := len(j.keys); {
	case depth == 1 && path[0] == "version":
		j.feed = strings.Contains(text, "jsonfeed.org/version/")
	case depth == 1 && j.feed:
		return j.feedValue(path[0], text)
	case depth == 3 && path[0] == "items":
		j.itemValue(path[2], text)
	case depth == 5 && path[0] == "items" && path[2] == "attachments" && path[4] == "url":
		j.current.add(text, "", "", page.Media)
	}
	return nil
}

// feedValue processes a property of the feed itself.
func (j *jsonReader) feedValue(key, text string) error {
	e := Entry{Priority: defaultPriority}
	switch key {
	case "home_page_url", "feed_url", "next_url":
		e.Kind = page.Feed
	case "icon", "favicon":
		e.Kind = page.Image
	default:
		return nil
	}
	_, err := j.add(j.base, text, e)
	return err
}

func (j *jsonReader) itemValue(key, text string) {
	switch key {
	case "url", "external_url":
		j.current.add(text, "", "", page.Feed)
	case "image", "banner_image":
		j.current.add(text, "", "", page.Image)
	case "date_modified":
		j.current.entry.Modified = date(text)
	case "date_published":
		if j.current.entry.Modified.IsZero() {
			j.current.entry.Modified = date(text)
		}
	}
}

// close ends an object or array. At the end of an item or of the feed, it yields the links.
func (j *jsonReader) close() error {
	j.keys = j.keys[:len(j.keys)-1]
	if depth := len(j.keys); depth != 0 && (depth != 2 || j.keys[0].key != "items") {
		return nil
	}
	if !j.feed { // the version must come first
		return ErrFormat
	}
	if err := j.addRecord(j.base, &j.current); err != nil {
		return err
	}
	j.current = record{entry: Entry{Priority: defaultPriority}, links: j.current.links[:0]}
	return nil
}
