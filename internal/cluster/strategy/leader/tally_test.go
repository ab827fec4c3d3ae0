package leader_test

import (
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

const (
	beat    = time.Second
	silence = 4 * time.Second
	retry   = 500 * time.Millisecond
)

// A tally is a small strategy with a central part, which counts how often names were added. Its nodes repeat requests
// until the leader has added their names. No name may be added twice, even if messages are lost.
type tally struct {
	self    strategy.Node
	elector *leader.Elector
	replica *replica // nil: not a candidate
	wants   map[string]bool
	askAt   time.Time
	out     []strategy.Action
	blind   bool // it cannot read changes by other nodes
}

func newTally(self strategy.Node) *tally {
	t := &tally{self: self, wants: map[string]bool{}, askAt: time.Unix(0, 0)}
	t.elector = leader.New(leader.Config{Self: self, Beat: beat, Silence: silence, Retry: retry,
		Execute:       func(a strategy.Action) { t.out = append(t.out, a) },
		LeaderChanged: func() { t.askAt = time.Unix(0, 0) },
		Replica: func() leader.Replica {
			t.replica = &replica{tally: t, asked: map[string][]strategy.Node{}}
			return t.replica
		}})
	return t
}

func (t *tally) step(now time.Time, in []strategy.Event) []strategy.Action {
	t.out = nil
	for _, e := range in {
		switch e := e.(type) {
		case strategy.Members:
			var all []strategy.Node
			for _, m := range e.Members {
				all = append(all, m.Node)
			}
			if t.elector.SetMembers(now, e.Epoch, all); !t.elector.Candidate() {
				t.replica = nil
			}
		case strategy.Message:
			switch kind, name := t.elector.Receive(now, e); kind {
			case leader.Question:
				t.replica.question(e.From, string(name))
			case leader.Answer:
				delete(t.wants, string(name))
			}
		default:
			t.elector.Apply(now, e)
		}
	}
	t.elector.Advance(now)
	if t.elector.Ready() && len(t.replica.waiting) > 0 {
		t.replica.append()
	}
	if len(t.wants) > 0 && !t.askAt.After(now) {
		t.askAt = now.Add(retry)
		for _, name := range slices.Sorted(maps.Keys(t.wants)) {
			t.elector.RequestSent(now)
			t.send(t.elector.Leader(), leader.Question, name)
		}
	}
	return t.out
}

func (t *tally) send(to strategy.Node, k leader.Kind, name string) {
	t.out = append(t.out, strategy.Send{To: to, Data: append(t.elector.Begin(k), name...)})
}

func (t *tally) due() time.Time {
	at := t.elector.NextDue()
	if len(t.wants) > 0 && (at.IsZero() || t.askAt.Before(at)) {
		at = t.askAt
	}
	return at
}

// times counts how often each name was added, by part.
type times [16]map[string]uint64

func partOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % 16)
}

func (t *times) Parts() int { return len(t) }

func (t *times) AppendPart(b []byte, part int) []byte {
	w := varint.Writer(b)
	for _, name := range slices.Sorted(maps.Keys(t[part])) {
		w.String(name)
		w.Uint(t[part][name])
	}
	return w
}

var errTally = errors.New("no tally")

func (t *times) LoadPart(part int, b []byte) error {
	t[part] = map[string]uint64{}
	r := varint.Reader{Rest: b}
	for len(r.Rest) > 0 {
		if name, n := r.String(), r.Uint(); !r.Bad {
			t[part][name] = n
		}
	}
	if r.Bad {
		return errTally
	}
	return nil
}

func (t *times) Apply(changes []byte) error {
	names, err := namesIn(changes)
	for _, name := range names {
		part := partOf(name)
		if t[part] == nil {
			t[part] = map[string]uint64{}
		}
		t[part][name]++
	}
	return err
}

func namesIn(changes []byte) (names []string, err error) {
	r := varint.Reader{Rest: changes}
	for len(r.Rest) > 0 {
		names = append(names, r.String())
	}
	if r.Bad {
		return nil, errTally
	}
	return names, nil
}

// A replica is the central part of a tally.
type replica struct {
	*tally
	times
	waiting []string                   // names to add
	written int                        // how many of them are being written
	asked   map[string][]strategy.Node // nodes that requested the name
	elected []strategy.Node            // previous leader of each of its terms
	deposed int
}

func (r *replica) question(from strategy.Node, name string) {
	if r.times[partOf(name)][name] > 0 {
		r.send(from, leader.Answer, name)
		return
	}
	if r.asked[name] == nil {
		r.waiting = append(r.waiting, name)
	}
	r.asked[name] = append(r.asked[name], from)
}

func (r *replica) append() {
	var w varint.Writer
	for _, name := range r.waiting {
		w.String(name)
	}
	r.written = len(r.waiting)
	r.elector.Append(w)
}

func (r *replica) Apply(changes []byte) error {
	if r.blind {
		return errTally
	}
	return r.times.Apply(changes)
}

func (r *replica) Elected(after strategy.Node) { r.elected = append(r.elected, after) }

func (r *replica) Committed() {
	for _, name := range r.waiting[:r.written] {
		for _, n := range r.asked[name] {
			r.send(n, leader.Answer, name)
		}
		delete(r.asked, name)
	}
	r.waiting, r.written = r.waiting[r.written:], 0
}

func (r *replica) Deposed() {
	r.deposed++
	r.waiting, r.written = nil, 0
	clear(r.asked)
}
