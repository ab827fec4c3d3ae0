package jsonl

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"strconv"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
)

// An object is a JSON object being appended to b.
type object struct {
	b     []byte
	begin int // index in b at which the line begins
}

// key begins a member. Keys must not need escaping.
func (l *object) key(name string) {
	if len(l.b) == l.begin {
		l.b = append(l.b, '{')
	} else {
		l.b = append(l.b, ',')
	}
	l.b = append(l.b, '"')
	l.b = append(l.b, name...)
	l.b = append(l.b, '"', ':')
}

func (l *object) text(name, value string) {
	l.key(name)
	l.b = field.JSON(l.b, value)
}

// optional adds a member unless its value is empty.
func (l *object) optional(name, value string) {
	if value != "" {
		l.text(name, value)
	}
}

// flag adds a member if it is true.
func (l *object) flag(name string, value bool) {
	if value {
		l.key(name)
		l.b = append(l.b, "true"...)
	}
}

func (l *object) number(name string, n int64) {
	l.key(name)
	l.b = strconv.AppendInt(l.b, n, 10)
}

func (l *object) time(name string, t time.Time) {
	l.key(name)
	l.b = t.UTC().AppendFormat(l.b, `"2006-01-02T15:04:05.000Z"`)
}

func (l *object) digest(name string, sum page.Digest) {
	l.key(name)
	l.b = append(l.b, `"sha1:`...)
	l.b = base32.StdEncoding.AppendEncode(l.b, sum[:])
	l.b = append(l.b, '"')
}

// hash adds an xxHash64.
func (l *object) hash(name string, sum uint64) {
	l.key(name)
	l.b = append(l.b, `"xxh64:`...)
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], sum)
	l.b = hex.AppendEncode(l.b, raw[:])
	l.b = append(l.b, '"')
}

func (l *object) end() []byte { return append(l.b, '}', '\n') }

// json writes a value in the form of package json.
func (l *object) json(name string, value any) {
	if b, err := json.Marshal(value); err == nil { // strings and integers always have a JSON form
		l.key(name)
		l.b = append(l.b, b...)
	}
}

func (l *object) variants(name string, all []page.Variant) {
	if len(all) == 0 {
		return
	}
	l.key(name)
	for i, v := range all {
		l.b = append(l.b, "[,"[min(i, 1)])
		l.b = append(l.b, `{"lang":`...)
		l.b = field.JSON(l.b, v.Lang)
		l.b = append(l.b, `,"url":`...)
		l.b = field.JSON(l.b, v.URL)
		l.b = append(l.b, '}')
	}
	l.b = append(l.b, ']')
}

func (l *object) screenshots(name string, all []Screenshot) {
	if len(all) == 0 {
		return
	}
	l.key(name)
	for i, s := range all {
		l.b = append(l.b, "[,"[min(i, 1)])
		l.b = append(l.b, `{"kind":`...)
		l.b = field.JSON(l.b, string(s.Kind))
		l.b = append(l.b, `,"bytes":`...)
		l.b = append(strconv.AppendInt(l.b, s.Bytes, 10), '}')
	}
	l.b = append(l.b, ']')
}

// addr adds an address if it is valid.
func (l *object) addr(name string, a netip.Addr) {
	if a.IsValid() {
		l.key(name)
		l.b = append(a.AppendTo(append(l.b, '"')), '"')
	}
}
