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

// hostile returns a machine that knows one other node, which is hostile.
func hostile(log *slog.Logger) (*Machine, time.Time) {
	now := time.Unix(1e9, 0)
	m := New(Config{Self: "self~1", Overlay: alone{}, HasPending: func(string) bool { return false }, Log: log,
		Balance: BalanceConfig{Area: 5, Block: 20}})
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
