package mesh

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A member of a mesh that has the cluster's secret may send anything. These tests check the effect on honest nodes;
// docs/explanation/mesh-security.md describes it, with the attacks that cannot be prevented.

// hostile returns a machine with the paper's policy that knows one other node, which is hostile.
func hostile(log *slog.Logger) (*Machine, time.Time) { return hostileTo(paperConfig(), log) }

// hostileTo returns such a machine with another configuration.
func hostileTo(cfg Config, log *slog.Logger) (*Machine, time.Time) {
	now := time.Unix(1e9, 0)
	cfg.Self, cfg.Overlay, cfg.HasPending, cfg.Log = "self~1", alone{}, func(string) bool { return false }, log
	m := New(cfg)
	m.Start(now, nil)
	m.Step(now, []Event{Fresh{now.Add(24 * time.Hour)}, Load{}}, nil)
	return m, now
}

// flightOf returns a packet with some items.
func flightOf(id uint64, items ...item) []byte {
	w := varint.Writer{messageItems}
	w.Uint(id)
	for _, it := range items {
		it.append(&w)
	}
	return w
}

// recordMessage returns a message with a version of the crawl's record.
func recordMessage(version uint64, by, data string) []byte {
	w := varint.Writer{messageRecord}
	w.Uint(0)
	w.Uint(version)
	w.String(by)
	w.Bytes([]byte(data))
	return w
}

// TestARecordOfAMadeUpVersion has a member send versions of the record that no changes can have produced: the record
// can be changed afterwards, and other nodes accept the change.
func TestARecordOfAMadeUpVersion(t *testing.T) {
	m, now := hostile(nil)
	other, _ := hostile(nil)
	for _, m := range []*Machine{m, other} {
		m.Step(now, []Event{Message{"other~1", recordMessage(7, "a~1", "true")}}, nil)
	}
	versions := []uint64{8 + maxAhead, maxVersion - 1, 1<<63 - 1, 1 << 63, 1<<64 - 2, 1<<64 - 1}
	for _, v := range versions {
		m.Step(now, []Event{Message{"other~1", recordMessage(v, "zz~1", "made up")}}, nil)
		if m.gossip.record.Version != 7 || string(m.gossip.record.Data) != "true" {
			t.Errorf("version %d is taken", v)
		}
	}
	m.Step(now, []Event{Change{Data: []byte("changed")}}, nil)
	other.Step(now, []Event{Message{"self~1", recordMessage(m.gossip.record.Version, "self~1", "changed")}}, nil)
	if string(other.gossip.record.Data) != "changed" {
		t.Errorf("version %d of the record is not taken", m.gossip.record.Version)
	}
	fresh, _ := hostile(nil)
	fresh.Step(now, []Event{Message{"other~1", recordMessage(1<<64-2, "zz~1", "made up")}}, nil)
	if fresh.gossip.record.Version != 0 {
		t.Error("a node that knows no record takes one of which none can follow")
	}
}

// TestVersionsThatAreNotTakenAreNotAskedFor has a member name such a version: it is not requested repeatedly.
func TestVersionsThatAreNotTakenAreNotAskedFor(t *testing.T) {
	m, now := hostile(nil)
	m.Step(now, []Event{Message{"other~1", recordMessage(7, "a~1", "true")}}, nil)
	w := varint.Writer{messageVersion}
	w.Bool(false)
	w.Uint(1<<64 - 2)
	w.String("zz~1")
	w.Uint(0)
	w = append(w, make([]byte, xor.Size)...)
	for _, a := range m.Step(now, []Event{Message{"other~1", w}}, nil) {
		if s, is := a.(Send); is && s.Data[0] == messageVersion {
			t.Error("it is asked for")
		}
	}
}

// TestGuestsThatNobodyReservedRoomFor has a member give a node all hosts of the world: the node accepts as many as it
// has reserved room for.
func TestGuestsThatNobodyReservedRoomFor(t *testing.T) {
	m, now := hostile(nil)
	give := func(from strategy.Node, hosts int) {
		for i := range hosts {
			m.Step(now, []Event{Message{from, flightOf(uint64(i+1), item{kind: itemGive, host: fmt.Sprint(from, i)})}}, nil)
		}
	}
	if give("other~1", 1000); len(m.place.view.guests) > 0 {
		t.Errorf("%d guests were taken for which no room was reserved", len(m.place.view.guests))
	}
	m.Step(now, []Event{Message{"other~1", flightOf(2000, item{kind: itemReserve, number: 2})}}, nil)
	if give("third~1", 100); len(m.place.view.guests) > 0 {
		t.Errorf("%d guests were taken for which another node had reserved room", len(m.place.view.guests))
	}
	if give("other~1", 1000); len(m.place.view.guests) != 2*20 {
		t.Errorf("%d guests were taken, of 40 for which room was reserved", len(m.place.view.guests))
	}
	if give("other~1", 40); len(m.place.view.guests) != 2*20 {
		t.Errorf("%d guests, as those came twice that are there", len(m.place.view.guests))
	}
}

// TestGuestsBeyondAnAllowance has a member that was sent a request give hosts without end: the node accepts the URLs
// that it could fetch in four minutes, of a few targets.
func TestGuestsBeyondAnAllowance(t *testing.T) {
	for _, c := range []struct {
		number int64 // URLs of a host
		target func(i int) strategy.Node
		want   int
	}{
		{1, func(int) strategy.Node { return "" }, 241},
		{100, func(int) strategy.Node { return "" }, 2},
		{1 << 40, func(int) strategy.Node { return "" }, 0},
		{1, func(i int) strategy.Node { return strategy.Node(fmt.Sprintf("t%d~1", i)) }, maxLenders},
	} {
		m, now := hostileTo(Config{}, nil)
		for _, a := range m.Step(now, []Event{Load{Rate: 1}}, nil) { // it queries the backlog
			if s, is := a.(Send); is && s.Data[0] == messageItems {
				r := varint.Reader{Rest: s.Data[1:]}
				m.Step(now, []Event{Message{"other~1", encodeReplies(r.Uint(), []reply{{code: replyNo}})}}, nil)
			}
		}
		m.Step(now, []Event{Message{"other~1", flightOf(1, item{kind: itemOffer})}}, nil)
		for i := range 1000 {
			give := item{kind: itemGive, host: fmt.Sprint(i), node: c.target(i), number: c.number}
			m.Step(now, []Event{Message{"other~1", flightOf(uint64(i+2), give)}}, nil)
		}
		if got := len(m.place.view.guests); got != c.want {
			t.Errorf("with %d URLs each, %d guests are accepted, want %d", c.number, got, c.want)
		}
	}
}

// TestItemsOfTheOtherPolicyAreAnswered has a member send all items of both policies.
func TestItemsOfTheOtherPolicyAreAnswered(t *testing.T) {
	for _, cfg := range []Config{{}, paperConfig()} {
		m, now := hostileTo(cfg, nil)
		kinds, answers := []byte{itemLevel, itemReserve, itemBacklog, itemRequest, itemOffer}, 0
		for i, kind := range kinds {
			for _, a := range m.Step(now, []Event{Message{"other~1", flightOf(uint64(i+1), item{kind: kind})}}, nil) {
				if s, is := a.(Send); is && s.Data[0] == messageReplies {
					answers++
				}
			}
		}
		if len(m.mail.inbound) > 0 || answers != len(kinds) {
			t.Errorf("%q: %d of %d packets are answered, %d are in progress", cfg.Terms.Strategy, answers, len(kinds),
				len(m.mail.inbound))
		}
	}
}

// TestMadeUpTermsDoNotEndAMember has a member send terms of another strategy that are said to be old.
func TestMadeUpTermsDoNotEndAMember(t *testing.T) {
	for _, cfg := range []Config{{}, paperConfig()} {
		var log bytes.Buffer
		m, now := hostileTo(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		before := m.gossip.terms.agreed.Terms
		w := varint.Writer{messageTerms}
		w.Bool(false)
		w.Bool(true)
		w.String("\x1b[2Jother")
		w.Uint(3)
		w.Uint(5000)
		w.Uint(1 << 39)
		w.Uint(1)
		for i := range 100 {
			at := now.Add(memberAfter + time.Duration(i)*time.Second)
			for _, a := range m.Step(at, []Event{Message{"other~1", w}}, nil) {
				if r, is := a.(TermsRefused); is {
					t.Errorf("%q: %v", cfg.Terms.Strategy, r.Err)
				}
			}
		}
		if m.gossip.terms.agreed.Terms != before {
			t.Errorf("%+v are adopted", m.gossip.terms.agreed)
		}
		if n := strings.Count(log.String(), "other terms"); n < 1 || n > 3 {
			t.Errorf("%d lines of the log", n)
		}
	}
	own := Terms{Strategy: Strategy}
	if err := own.Check(Terms{Strategy: "\x1b[2J"}, "a"); strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
}

// TestAFloodOfFlights has a member send thousands of packets whose items wait for the disk: few of them are processed
// at a time, and another node's packet is processed all the same.
func TestAFloodOfFlights(t *testing.T) {
	m, now := hostile(nil)
	link := []Link{{State: Dispatched, Item: []byte("u")}}
	recorded := 0
	send := func(from strategy.Node, id uint64) {
		data := flightOf(id, item{kind: itemStore, host: fmt.Sprintf("h%d.test", id), links: link})
		for _, a := range m.Step(now, []Event{Message{from, data}}, nil) {
			if _, is := a.(Record); is {
				recorded++
			}
		}
	}
	for id := range uint64(5000) {
		send("other~1", id+1)
	}
	if recorded > maxInboundOf {
		t.Errorf("%d flights of a node are under way", recorded)
	}
	before := recorded
	if send("third~1", 1<<40); recorded != before+1 {
		t.Error("another node's flight is not done")
	}
}

// TestAFlightThatComesLongAfterIsDropped repeats a packet: soon, as a sender without an answer does, and an hour later.
func TestAFlightThatComesLongAfterIsDropped(t *testing.T) {
	m, now := hostile(nil)
	data := flightOf(5, item{kind: itemCheck, host: "h.test"})
	answers := func(at time.Time) (n int) {
		for _, a := range m.Step(at, []Event{Message{"other~1", data}}, nil) {
			if s, is := a.(Send); is && s.Data[0] == messageReplies {
				n++
			}
		}
		return n
	}
	if answers(now) != 1 || answers(now.Add(retry<<maxTries)) != 1 {
		t.Error("a flight is not answered that its sender waits for")
	}
	if answers(now.Add(time.Hour)) > 0 {
		t.Error("a flight is done an hour after it was sent first")
	}
}

// TestListsWithoutEnd has a member write endless lists of pages at risk: there is a limit, and the member is notified.
func TestListsWithoutEnd(t *testing.T) {
	m, now := hostile(nil)
	written, over := int64(0), 0
	piece := strings.Repeat("x", riskPiece)
	sizes := map[string]int64{}
	names := []string{"a", "b", "c", "d"}
	for i := range 3 * maxWard / riskPiece {
		msg := risksMessage{number: uint64(i + 1), names: names, piece: i % len(names), data: []byte(piece)}
		msg.at = sizes[names[msg.piece]]
		for _, a := range m.Step(now, []Event{Message{"other~1", msg.encode()}}, nil) {
			switch a := a.(type) {
			case WriteRisk:
				written += int64(len(a.Data))
				sizes[a.Name] += int64(len(a.Data))
				m.Step(now, []Event{RiskWritten{ID: a.ID}}, nil)
			case Send:
				if r := (varint.Reader{Rest: a.Data}); r.Byte() == messageHaveRisks {
					r.Uint()
					_ = r.String()
					if r.Bool() {
						over++
					}
				}
			}
		}
	}
	if written > maxWard || written < maxWard/2 {
		t.Errorf("%d bytes are written for one node", written)
	}
	if over == 0 {
		t.Error("it is never told that there is no room")
	}
}

// TestGarbageDoesNotFillTheLog has a member send ten thousand invalid messages in two minutes.
func TestGarbageDoesNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	m, now := hostile(slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 10000 {
		m.Step(now.Add(time.Duration(i)*12*time.Millisecond), []Event{Message{"other~1", []byte{messageRecord, 255}}}, nil)
	}
	if n := strings.Count(log.String(), "invalid message from"); n < 1 || n > 3 {
		t.Errorf("%d lines of the log", n)
	}
}

// TestReportsThatNobodyRequested has a member request the report of a node that has none, and send reports with other
// tallies: they are ignored.
func TestReportsThatNobodyRequested(t *testing.T) {
	merge := func(present, gone [][]byte) []byte {
		t.Errorf("merged: %q, %q", present, gone)
		return nil
	}
	for what, cfg := range map[string]Config{
		"without reports": {},
		"with reports": {Status: StatusConfig{Pages: func() int64 { return 0 }},
			Results: ResultsConfig{Own: func() []byte { return nil }, Merge: merge}},
	} {
		m, now := hostileTo(cfg, nil)
		if cfg.Results.Own == nil {
			m.Step(now, []Event{Message{"other~1", []byte{messageGather, 9, 0, 100, queryResults}}}, nil)
		}
		gathered := 0
		for _, a := range m.Step(now, []Event{Gather{Tag: 1}}, nil) {
			s, is := a.(Send)
			if !is || s.Data[0] != messageGather {
				continue
			}
			r := varint.Reader{Rest: s.Data[1:]}
			w := varint.Writer{messageTally}
			w.Uint(r.Uint())
			w.Bool(true)
			sum := Tally{Nodes: 1, Results: []byte("report")}
			sum.append(&w)
			for _, a := range m.Step(now, []Event{Message{"other~1", w}}, nil) {
				if g, is := a.(Gathered); is && g.Tally.Nodes == 2 && g.Tally.Results == nil {
					gathered++
				}
			}
		}
		if gathered != 1 {
			t.Errorf("%s: %d tallies of two nodes without a report", what, gathered)
		}
	}
}

// TestMadeUpReportsOfOtherNodes has a member send reports of a node and of another one, with great versions: the node's
// own reports, and later ones of the other, are kept.
func TestMadeUpReportsOfOtherNodes(t *testing.T) {
	pages := int64(1)
	stored := uint64(time.Unix(1e9, 0).Add(time.Minute).UnixMilli()) // the clock was a minute ahead
	for _, version := range []uint64{0, stored, 1 << 62} {
		cfg := Config{Status: StatusConfig{Pages: func() int64 { return pages }},
			Results: ResultsConfig{Own: func() []byte { return fmt.Append(nil, pages) }},
			Earlier: Earlier{Results: map[strategy.Node]Result{"self~1": {version, []byte("earlier")}}}}
		m, now := hostileTo(cfg, nil)
		receive := func(node string, version uint64, data string) {
			w := varint.Writer{messageResult}
			w.String(node)
			w.Uint(version)
			w.Bytes([]byte(data))
			m.Step(now, []Event{Message{"other~1", w}}, nil)
		}
		for _, ahead := range []time.Duration{0, time.Minute, time.Hour, 1000 * time.Hour} {
			receive("self~1", uint64(now.Add(ahead).UnixMilli()), "made up")
		}
		receive("self~1", 1<<64-1, "made up")
		receive("gone~1", 1<<64-1, "made up")
		receive("gone~1", uint64(now.UnixMilli()), "true")
		if got := string(m.Results()["gone~1"].Data); got != "true" {
			t.Errorf("the report of another node is %q", got)
		}
		for range 3 {
			pages++
			now = now.Add(resultsEvery)
			m.Step(now, []Event{Tick{}}, nil)
			if got := m.Results()["self~1"]; string(got.Data) != fmt.Sprint(pages) || version == stored &&
				got.Version <= stored {
				t.Errorf("after version %d: the own report is %q, version %d", version, got.Data, got.Version)
			}
		}
	}
}
