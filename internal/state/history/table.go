package history

import (
	"bytes"
	"encoding/binary"
	"slices"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
)

// A table contains the data not yet on disk. It has a record for each host, with the host's key on disk and no value,
// and one for each URL. The key of a URL is the reference of its host and the hash. The URLs of a host are in a linked
// list.
type table struct {
	*mem.Table
	hosts []mem.Ref
	key   []byte // buffer for urlKey
}

// The words of a record.
const (
	wordData = iota
	wordNext // next in the list; for a host its first URL
)

// The flags of a record.
const (
	flagSet   = 1 << iota // it has a value; otherwise it was deleted, or is a host
	flagDone              // the value is done, at the first visit
	flagAgain             // the value is of a later visit, and encoded
)

func newTable() *table { return &table{Table: mem.New()} }

func (t *table) urlKey(host mem.Ref, h *Hash) string {
	t.key = append(binary.LittleEndian.AppendUint32(t.key[:0], uint32(host)), h[:]...)
	return string(t.key)
}

// get returns the value of a record.
func (t *table) get(ref mem.Ref) (v value, ok bool) {
	if ref == 0 {
		return v, false
	}
	f := t.Flags(ref)
	if f&flagSet == 0 {
		return v, false
	}
	if f&flagDone != 0 {
		return value{done: true}, true
	}
	if f&flagAgain != 0 {
		return readValue(t.Kept(mem.Ref(t.Word(ref, wordData))))
	}
	return value{data: t.Kept(mem.Ref(t.Word(ref, wordData)))}, true
}

func (t *table) set(ref mem.Ref, v value) {
	if v.visit > 0 {
		t.SetFlags(ref, flagSet|flagAgain)
		t.SetWord(ref, wordData, uint32(t.Keep(v.append(nil))))
		return
	}
	if v.done {
		t.SetFlags(ref, flagSet|flagDone)
		return
	}
	t.SetFlags(ref, flagSet)
	t.SetWord(ref, wordData, uint32(t.Keep(v.data)))
}

// host returns the record of a host, which it creates if needed.
func (t *table) host(key []byte) mem.Ref {
	ref := t.Find(string(key))
	if ref == 0 {
		ref = t.Add(string(key))
		t.hosts = append(t.hosts, ref)
	}
	return ref
}

// setURL sets the value of a URL of a host.
func (t *table) setURL(host mem.Ref, h *Hash, v value) {
	key := t.urlKey(host, h)
	ref := t.Find(key)
	if ref == 0 {
		ref = t.Add(key)
		t.SetWord(ref, wordNext, t.Word(host, wordNext))
		t.SetWord(host, wordNext, uint32(ref))
	}
	t.set(ref, v)
}

// getURL returns the value of a URL of a host. host may be 0.
func (t *table) getURL(host mem.Ref, h *Hash) (value, bool) {
	if host == 0 {
		return value{}, false
	}
	return t.get(t.Find(t.urlKey(host, h)))
}

// forget deletes a host with all its URLs.
func (t *table) forget(host mem.Ref) {
	for ref := host; ref != 0; ref = mem.Ref(t.Word(ref, wordNext)) {
		t.SetFlags(ref, 0)
	}
}

// sorted returns the hosts from a key on, in order, or only the host with the key only.
func (t *table) sorted(only, from []byte) []mem.Ref {
	if only != nil {
		if ref := t.Find(string(only)); ref != 0 {
			return []mem.Ref{ref}
		}
		return nil
	}
	var all []mem.Ref
	for _, ref := range t.hosts {
		key := t.Key(ref)
		if bytes.Compare(key, from) >= 0 || bytes.HasPrefix(from, key) {
			all = append(all, ref)
		}
	}
	slices.SortFunc(all, func(a, b mem.Ref) int { return bytes.Compare(t.Key(a), t.Key(b)) })
	return all
}

// urls appends the URLs of a host that have a value, in order.
func (t *table) urls(host mem.Ref, all []mem.Ref) []mem.Ref {
	from := len(all)
	for ref := mem.Ref(t.Word(host, wordNext)); ref != 0; ref = mem.Ref(t.Word(ref, wordNext)) {
		if t.Flags(ref)&flagSet != 0 {
			all = append(all, ref)
		}
	}
	slices.SortFunc(all[from:], func(a, b mem.Ref) int { return bytes.Compare(t.Key(a), t.Key(b)) })
	return all
}

// appendKey appends the key on disk of a URL.
func (t *table) appendKey(b []byte, host, url mem.Ref) []byte {
	return append(append(b, t.Key(host)...), t.Key(url)[4:]...)
}

var _ run.Source = (*tableSource)(nil)

// A tableSource reads a frozen table for writing a run.
type tableSource struct {
	t          *table
	hosts      []mem.Ref
	host       mem.Ref
	urls       []mem.Ref
	room       []mem.Ref
	key, value []byte
	stop       func() error
	err        error
}

func (t *table) source(stop func() error) *tableSource {
	return &tableSource{t: t, hosts: t.sorted(nil, nil), stop: stop}
}

func (s *tableSource) Next() bool {
	for len(s.urls) == 0 {
		if len(s.hosts) == 0 {
			return false
		}
		if s.err = s.stop(); s.err != nil {
			return false
		}
		s.host, s.hosts = s.hosts[0], s.hosts[1:]
		s.room = s.t.urls(s.host, s.room[:0])
		s.urls = s.room
	}
	s.key = s.t.appendKey(s.key[:0], s.host, s.urls[0])
	v, _ := s.t.get(s.urls[0])
	s.value = v.append(s.value[:0])
	s.urls = s.urls[1:]
	return true
}

func (s *tableSource) Key() []byte   { return s.key }
func (s *tableSource) Value() []byte { return s.value }
func (s *tableSource) Err() error    { return s.err }
