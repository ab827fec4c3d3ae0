package quorum

import (
	"reflect"
	"slices"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

var messages = []interface{ encode() []byte }{
	chunkMsg{t: member.Transfer{From: "a~1", To: "b~2", Epoch: 3, Attempt: 1 << 40}, seq: 7, last: true,
		data: []byte("hosts")},
	chunkMsg{data: []byte{}},
	ackMsg{t: member.Transfer{From: "a~1", To: "b~2", Epoch: 3, Attempt: 4}, next: 5, complete: true, process: 6},
	queryMsg{from: "a~1", to: "b~2", epoch: 3},
	answerMsg{queryMsg{"a~1", "b~2", 3}, []uint64{1, 2}},
	answerMsg{queryMsg{"a~1", "b~2", 3}, nil},
}

func TestMessages(t *testing.T) {
	for _, m := range messages {
		got, err := decode(m.encode())
		if err != nil || !reflect.DeepEqual(got, any(m)) {
			t.Errorf("%#v came back as %#v, %v", m, got, err)
		}
		for n := range m.encode() {
			if got, err := decode(m.encode()[:n]); err == nil {
				t.Errorf("the first %d bytes of %#v are taken for %#v", n, m, got)
			}
		}
	}
}

// FuzzMessage decodes any bytes: it must not panic, and encoding a decoded message gives the same bytes.
func FuzzMessage(f *testing.F) {
	for _, m := range messages {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		again, err := decode(m.(interface{ encode() []byte }).encode())
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%#v came back as %#v, %v", m, again, err)
		}
	})
}

func FuzzLease(f *testing.F) {
	l := Lease{Instance: 1, Beat: 2, Done: 3, Revoked: true, Report: []byte("{}")}
	f.Add(l.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLease(data)
		if err != nil {
			return
		}
		if again, err := ParseLease(l.Encode()); err != nil || !reflect.DeepEqual(l, again) {
			t.Errorf("%+v came back as %+v, %v", l, again, err)
		}
	})
}

func TestTableRemembersMembers(t *testing.T) {
	members := func(nodes ...strategy.Node) (all []strategy.Member) {
		for _, n := range nodes {
			all = append(all, strategy.Member{Node: n, Slot: len(n)})
		}
		return all
	}
	tab := &Table{Epoch: 1, Finalized: 1, Members: members("a~1", "c~1")}
	tab = tab.with(members("b~1")[0])
	tab.remove("a~1", "x~1")
	tab = tab.with(members("a~1")[0])
	for epoch, want := range map[uint64][]strategy.Member{1: members("a~1", "c~1"), 2: members("a~1", "b~1", "c~1"),
		3: members("b~1", "c~1"),
		4: members("a~1", "b~1", "c~1")} {
		if got := tab.membersAt(epoch); !slices.Equal(got, want) {
			t.Errorf("epoch %d had %v, not %v", epoch, got, want)
		}
	}
	if !tab.expects("b~1", "c~1", shiftsLeast) || tab.expects("c~1", "b~1", shiftsLeast) ||
		!tab.expects("c~1", "b~1", shiftsAny) {
		t.Error("who came expects something of all, others of those that went; all of all, where members that come and go " +
			"move any host")
	}
	read, err := ParseTable(tab.Encode())
	if err != nil || !reflect.DeepEqual(read, tab) {
		t.Errorf("%+v came back as %+v, %v", tab, read, err)
	}
	if tab = tab.end(); tab.expects("b~1", "c~1", shiftsLeast) || len(tab.membersAt(4)) != 3 {
		t.Error("a settled table expects nothing")
	}
}
