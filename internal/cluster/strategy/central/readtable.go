package central

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A Host is a row of the leader's table, for users.
type Host struct {
	Name    string
	Owner   strategy.Node
	Since   time.Time // time of the last change
	State   string    // "reached"; "parked": no node reaches it; "promised": it is moving to its owner
	Round   int       // rounds in which all nodes have failed
	Moved   bool      // the host has moved, or is moving, to a node with less work
	Failed  []strategy.Node
	RetryAt time.Time // when a parked host is tried again
}

// ReadTable reads a leader's log and calls f with each host of its table, in no particular order, until f returns
// false. read must call its argument with all entries of the log. records loads the policy's records; nil if it has
// none.
func ReadTable(key hosttable.Key, records leader.State, read func(func(number uint64, data []byte) error) error,
	f func(Host) bool) error {
	s := newLogState(key, records)
	err := read(func(_ uint64, data []byte) error {
		e, err := leader.ParseEntry(data)
		if err != nil {
			return err
		}
		return e.Load(&s)
	})
	if err != nil {
		return err
	}
	enough := false
	for cursor, done := uint64(0), false; !done && !enough; {
		cursor, done = s.table.All(cursor, 1000, func(name string, r hosttable.Row) {
			enough = enough || !f(s.host(name, r))
		})
	}
	return nil
}

func (s *logState) host(name string, r hosttable.Row) Host {
	h := hostOf(name, r)
	if n, noted := s.reasons[s.table.Part(name)][name]; noted && r.State == Parked {
		h.Failed, h.RetryAt = n.failed, time.Unix(int64(n.retryAt), 0).UTC()
	}
	return h
}

// hostOf converts a row without the reason why the host is parked.
func hostOf(name string, r hosttable.Row) Host {
	h := Host{Name: name, Owner: r.Owner, Since: time.Unix(int64(r.Since), 0).UTC(), Round: int(r.Round &^ Moved),
		State: "reached", Moved: r.Round&Moved != 0}
	switch r.State {
	case Parked:
		h.State = "parked"
	case Promised:
		h.State = "promised"
	}
	return h
}

// EachChange calls f with the hosts that one entry of a leader's log changes, in their new state.
func EachChange(data []byte, f func(Host)) error {
	e, err := leader.ParseEntry(data)
	if err != nil {
		return err
	}
	return readChanges(e.Changes, func(name string, r hosttable.Row) { f(hostOf(name, r)) }, func(string, parkReason) {},
		func([]byte) error { return nil })
}
