package overlay

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/varint"
)

// listed returns the contacts in a message.
func listed(m parsedMessage) (all []Contact) {
	r := varint.Reader{Rest: m.list}
	for range m.count {
		t := nextReported(&r)
		all = append(all, t.contact(IDOf(string(t.name))))
	}
	return all
}

func somePeers(n, name, addrs, addr int) (all []*peer) {
	for i := range n {
		p := &peer{Contact: Contact{Node: fmt.Sprintf("%0*d", name, i)}}
		p.ID = IDOf(p.Node)
		for j := range addrs {
			p.Addrs = append(p.Addrs, fmt.Sprintf("%0*d", addr, j))
		}
		all = append(all, p)
	}
	return all
}

func TestListsComeAsTheyWereSent(t *testing.T) {
	for _, size := range [][4]int{{0, 0, 0, 0}, {1, 5, 0, 0}, {20, 30, 3, 40}, {48, MaxName, MaxAddrs, MaxAddr}} {
		list := somePeers(size[0], size[1], size[2], size[3])
		w := head(findAnswer, 7, listRoom(list))
		w.Uint(uint64(len(list) + 1))
		writeList(&w, list, nil)
		m, err := parse(w)
		if err != nil || m.kind != findAnswer || m.number != 7 || m.exact != len(list)+1 {
			t.Fatalf("%v: %v, kind %c, number %d, exact %d", size, err, m.kind, m.number, m.exact)
		}
		got := listed(m)
		if len(got) != len(list) {
			t.Fatalf("%v: %d contacts", size, len(got))
		}
		for i, p := range list {
			if !reflect.DeepEqual(got[i], p.Contact) {
				t.Fatalf("%v: contact %d is %+v, want %+v", size, i, got[i], p.Contact)
			}
		}
		for cut := range w {
			if len(w) < 5000 && cut < len(w) {
				if _, err := parse(w[:cut]); err == nil {
					t.Fatalf("%v: %d of %d bytes are taken for a message", size, cut, len(w))
				}
			}
		}
		if _, err := parse(append(w, 0)); err == nil {
			t.Errorf("%v: one byte too many is not seen", size)
		}
	}
}

// beyond returns messages that each exceed one bound.
func beyond() map[string][]byte {
	with := func(kind byte, f func(*varint.Writer)) []byte {
		w := head(kind, 1, 0)
		f(&w)
		return w
	}
	list := func(contacts, name, addrs, addr int) []byte {
		return with(nearAnswer, func(w *varint.Writer) {
			w.Uint(1)
			w.Bool(true)
			writeList(w, somePeers(contacts, name, addrs, addr), nil)
		})
	}
	return map[string][]byte{
		"nothing":       {},
		"unknown kind":  {'x', 1},
		"no number":     {pingQuestion},
		"long number":   with('p', func(w *varint.Writer) { *w = (*w)[:1]; w.Uint(1 << 32) }),
		"short id":      with(findQuestion, func(w *varint.Writer) { w.Uint(20) }),
		"many contacts": list(65, 3, 0, 0),
		"long name":     list(1, 256, 0, 0),
		"many addrs":    list(1, 3, 9, 1),
		"long address":  list(1, 3, 1, 256),
		"huge count":    with(nearAnswer, func(w *varint.Writer) { w.Uint(1); w.Bool(true); w.Uint(1 << 60) }),
		"exact of none": with(findAnswer, func(w *varint.Writer) { w.Uint(2); w.Uint(0) }),
		"too large":     append([]byte{pingQuestion, 1}, make([]byte, MaxMessage)...),
	}
}

func TestWhatExceedsTheBoundsIsRefused(t *testing.T) {
	for name, data := range beyond() {
		if _, err := parse(data); err == nil {
			t.Errorf("%s: taken", name)
		}
		o := New(Config{Self: Contact{Node: "self"}})
		now := time.Unix(1e9, 0)
		out := o.Step(now, []Event{Join{}, Message{From: Contact{Node: "other"}, Data: data}}, nil)
		refused := false
		for _, a := range out {
			switch a := a.(type) {
			case Refused:
				refused = a.Node == "other" && errors.Is(a.Err, ErrMessage)
			case Send:
				t.Errorf("%s: answered", name)
			}
		}
		if !refused {
			t.Errorf("%s: not refused", name)
		}
	}
	o := New(Config{Self: Contact{Node: "self"}})
	out := o.Step(time.Unix(1e9, 0), []Event{
		Message{From: Contact{Node: strings.Repeat("x", 256)}, Data: []byte{pingQuestion, 1}},
		Message{From: Contact{}, Data: []byte{pingQuestion, 1}},
	}, nil)
	if len(out) != 3 { // two Refused and a Timer
		t.Errorf("names that are too long, or none, are not refused: %+v", out)
	}
}

func TestAddressesBeyondTheBoundsAreCutOff(t *testing.T) {
	long := strings.Repeat("x", MaxAddr+1)
	got := clean([]string{"a", long, "b", long, "c", "d", "e", "f", "g", "h", "i"})
	if want := []string{"a", "b", "c", "d", "e", "f", "g", "h"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, data := range beyond() {
		if len(data) < 1000 {
			f.Add(data)
		}
	}
	for _, data := range good() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parse(data)
		if err != nil {
			return
		}
		for _, c := range listed(m) {
			if len(c.Node) > MaxName || len(c.Addrs) > MaxAddrs {
				t.Errorf("%d bytes of name, %d addresses", len(c.Node), len(c.Addrs))
			}
		}
	})
}

// good returns messages of all kinds.
func good() (all [][]byte) {
	w := head(findAnswer, 1, 0)
	w.Uint(1)
	writeList(&w, somePeers(3, 4, 2, 5), nil)
	all = append(all, w)
	w = head(nearAnswer, 2, 0)
	w.Uint(9)
	w.Bool(true)
	writeList(&w, somePeers(3, 4, 2, 5), nil)
	all = append(all, w)
	w = head(nearQuestion, 3, 0)
	w.Uint(1)
	w.Uint(2)
	all = append(all, w)
	w = head(findQuestion, 4, 0)
	w = append(w, make([]byte, 32)...)
	w.Uint(20)
	return append(all, w, head(pingQuestion, 5, 0), head(pingAnswer, 6, 0), []byte{farewell})
}

// FuzzStep sends arbitrary bytes, split into messages of three other nodes, to a node with queries in progress.
func FuzzStep(f *testing.F) {
	for _, data := range good() {
		f.Add(data, data, uint8(1))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		o := New(Config{Self: Contact{Node: "self"}, K: 2, Neighbors: 2, Alpha: 2})
		o.questions.number = 0
		now := time.Unix(1e9, 0)
		o.Step(now, []Event{Join{Contacts: []Contact{{Node: "x"}, {Node: "y"}}}, Find{ID: IDOf("z"), Want: 2}}, nil)
		for i, data := range [][]byte{a, b, a, b} {
			from := Contact{Node: string('x' + (n+byte(i))%3)}
			if len(data) > 1 {
				data = append([]byte{data[0], byte(i)}, data[2:]...) // the number of a query that may be in progress
			}
			now = now.Add(time.Duration(n) * 10 * time.Millisecond)
			o.Step(now, []Event{Message{From: from, Data: data}, Fired{}}, nil)
		}
		for range 10 {
			now = now.Add(time.Second)
			o.Step(now, []Event{Fired{}}, nil)
		}
		if len(o.questions.open) > o.env.cfg.Questions || o.table.live > 3 {
			t.Errorf("%d questions, %d contacts", len(o.questions.open), o.table.live)
		}
	})
}
