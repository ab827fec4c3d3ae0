package jsonl

import (
	"encoding/base32"
	"net/netip"
	"strconv"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
)

// An object is a line that is being written.
type object struct {
	b     []byte
	begin int // of the line, in b
}

// key begins a member; keys are plain words.
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

// optional adds a member that is there only when it has something to say.
func (l *object) optional(name, value string) {
	if value != "" {
		l.text(name, value)
	}
}

// flag adds a member only where it is true.
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

func (l *object) end() []byte { return append(l.b, '}', '\n') }

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

// addr adds an address, if it is known.
func (l *object) addr(name string, a netip.Addr) {
	if a.IsValid() {
		l.key(name)
		l.b = append(a.AppendTo(append(l.b, '"')), '"')
	}
}
