package mesh

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// alone is an overlay with one other node.
type alone struct{}

func (alone) Closest(xor.ID, int) ([]strategy.Node, bool) {
	return []strategy.Node{"self~1", "other~1"}, true
}

func (alone) Bucket(i int) []strategy.Node {
	if i == xor.Of("node", "self~1").FirstDiff(xor.Of("node", "other~1")) {
		return []strategy.Node{"other~1"}
	}
	return nil
}

func (alone) Occupied() (id xor.ID) {
	return xor.Of("node", "self~1").Distance(xor.Of("node", "other~1"))
}

func (alone) Neighbors() []strategy.Node { return []strategy.Node{"other~1"} }

// FuzzMessage processes any message of another node: the machine continues, and writes no more than it was sent, or was
// asked for.
func FuzzMessage(f *testing.F) {
	open, done := Link{State: Dispatched, Item: []byte("u")}, Link{Hash: Hash{1}, State: Done}
	items := []item{
		{kind: itemStore, host: "h.test", links: []Link{open, done}},
		{kind: itemDispatch, host: "h.test", links: []Link{open}},
		{kind: itemMoved, host: "h.test", node: "x~1"},
		{kind: itemMarks, host: "g.test", links: []Link{done}},
		{kind: itemMarks, host: "g.test", links: []Link{done, {State: Scheduled, Visit: 1 << 40, Item: []byte("u")}}},
		{kind: itemStore, host: "g.test", links: []Link{{State: Done, Visit: 2}, {State: Scheduled, Visit: 7}}},
		{kind: itemYield, host: "h.test"}, {kind: itemLevel, number: -3}, {kind: itemReserve, number: 7},
		{kind: itemGive, host: "i.test"}, {kind: itemCheck, host: "h.test"},
		{kind: itemCookies, host: "guest.test", cookies: []byte("cookie")},
	}
	for _, it := range items {
		w := []byte{messageItems, 1}
		it.append((*varint.Writer)(&w))
		f.Add(w)
	}
	f.Add(encodeReplies(1, []reply{{code: replyYes, states: []State{Done, Unknown}}, {code: replyMoved, node: "x~1"}}))
	f.Add(encodeReplies(1, []reply{{code: replyYes, states: []State{Done}, later: []Link{{State: Scheduled, Visit: 7}}}}))
	f.Add([]byte{messageGather, 9, 3, 100, querySums})
	f.Add([]byte{messageGather, 9, 0, 100, queryResults})
	f.Add([]byte{messageTally, 9, 1, 1, 1, 1, 1, 1, 8, 0, 0, 0})
	f.Add([]byte{messageRecord, 3, 1, 1, 'x', 2, '{', '}'})
	f.Add(append([]byte{messageVersion, 1, 1, 'x', 2}, make([]byte, xor.Size)...))
	f.Add([]byte{messageChunk, 0, 3, 'a', 'b', 'c'})
	f.Add(append([]byte{messageHave, 1}, make([]byte, xor.Size)...))
	f.Add(append([]byte{messageWant}, make([]byte, xor.Size)...))
	f.Add([]byte{messageCounts, 3, 'a', '~', '1', 7})
	f.Add(risksOf("gone~1", "f", "page"))
	f.Add(risksOf("../../x", "f", "page"))
	f.Add(risksOf("", "f", "page"))
	f.Add([]byte{messageHaveRisks, 1, 0, 0, 1, 1, 'f', 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := New(Config{Self: "self~1", Overlay: alone{}, HasPending: func(string) bool { return false },
			ShareCookies: true})
		now := time.Unix(1e9, 0)
		m.Step(now, []Event{Fresh{now.Add(time.Hour)}, Load{Waiting: 3}}, nil)
		m.place.setGuest("guest.test", true)
		told := 0
		for range 3 {
			now = now.Add(time.Second)
			out := m.Step(now, []Event{Message{"other~1", data}}, nil)
			var answers []Event
			for _, a := range out {
				switch a := a.(type) {
				case Record:
					told += len(a.Links)
					answers = append(answers, Recorded{ID: a.ID, Before: make([]State, len(a.Links)), Open: len(a.Links)})
				case Enqueue:
					told += len(a.Links)
					answers = append(answers, Enqueued{ID: a.ID, Done: make([]bool, len(a.Links))})
				case Read:
					answers = append(answers, Known{ID: a.ID})
				case Release:
					answers = append(answers, Released{Host: a.Host})
				case ReadCookies:
					answers = append(answers, CookiesRead{ID: a.ID, Data: []byte("secret")})
				case AddCookies:
					told += len(a.Data)
					answers = append(answers, CookiesAdded{ID: a.ID})
				case WriteRisk:
					if len(a.Node) > 200 || strings.ContainsFunc(string(a.Node), isNoLetter) {
						t.Errorf("lists of %q are kept, which is no node's name", a.Node)
					}
					answers = append(answers, RiskWritten{ID: a.ID})
				}
			}
			m.Step(now, answers, nil)
		}
		if told > 12*len(data) {
			t.Errorf("%d links of %d bytes", told, len(data))
		}
	})
}

// risksOf returns a message about a node's list, with a piece of it.
func risksOf(of strategy.Node, name, data string) []byte {
	msg := risksMessage{number: 1, of: of, names: []string{name}, data: []byte(data)}
	return msg.encode()
}

// isNoLetter reports whether no node's name has such a character.
func isNoLetter(c rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~", c)
}

// TestListsOfNoNode has another node send lists of an invalid node: no file gets its name.
func TestListsOfNoNode(t *testing.T) {
	now := time.Unix(1e9, 0)
	long := strategy.Node(strings.Repeat("a", 201))
	for _, of := range []strategy.Node{"../../x~1", "a/b~1", "a\x00~1", "a.b~1", "é~1", long} {
		m := New(Config{Self: "self~1", Overlay: alone{}})
		m.Step(now, []Event{Fresh{now.Add(time.Hour)}, Message{"other~1", risksOf(of, "f", "page")},
			Message{of, risksOf("", "f", "page")}}, nil)
		if len(m.risks.wards.byNode) > 0 {
			t.Errorf("lists of %q are kept", of)
		}
	}
	m := New(Config{Self: "self~1", Overlay: alone{}})
	m.Step(now, []Event{Fresh{now.Add(time.Hour)}, Message{"other~1", risksOf("gone~1", "f", "page")}}, nil)
	if m.risks.wards.byNode["gone~1"] == nil {
		t.Error("no lists of a node are kept that is missed")
	}
}
