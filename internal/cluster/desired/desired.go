// Package desired defines a crawl's desired state and shared settings, and the changes that users may make to them.
//
// It does not know how nodes agree on this state. Where there are servers, a registry holds it; otherwise it spreads
// from node to node.
package desired

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A State is what all nodes are to do.
type State string

// The states. A crawl without a record waits.
const (
	Waiting  State = "waiting"  // for a start
	Running  State = "running"  // fetch
	Paused   State = "paused"   // fetch nothing, and stay
	Stopping State = "stopping" // end; a later start goes on
	Done     State = "done"     // nothing is left to fetch
)

// A Record is what all nodes must know of a crawl.
type Record struct {
	State    State               `json:"state"`
	Why      string              `json:"why,omitempty"` // of a stop that nobody asked for
	Changed  time.Time           `json:"changed"`       // the state, by the clock of who did
	Settings map[string][]string `json:"settings,omitempty"`
	Seeds    uint64              `json:"seeds"`         // chunks of seeds that there are
	Log      []Change            `json:"log,omitempty"` // what people have had the crawl do, the newest last
}

// A Change is what somebody has had all nodes do.
type Change struct {
	Time time.Time `json:"time"` // by the clock of who wrote it
	By   string    `json:"by,omitempty"`
	What string    `json:"what"`
}

const (
	maxChanges  = 20 // that a record has
	maxBy       = 100
	maxWhat     = 300         // bytes of each
	retryWindow = time.Minute // in which a change that is as the last one is taken for another try of it
)

// AddChange notes what somebody has changed. Only the last changes are kept.
func (r *Record) AddChange(by, what string) {
	c := Change{time.Now().UTC(), truncate(by, maxBy), truncate(what, maxWhat)}
	if n := len(r.Log); n > 0 && r.Log[n-1].By == c.By && r.Log[n-1].What == c.What &&
		c.Time.Sub(r.Log[n-1].Time) < retryWindow {
		return
	}
	all := append(slices.Clone(r.Log), c)
	r.Log = all[max(len(all)-maxChanges, 0):]
}

// Since are the changes that another, earlier record does not have.
func (r *Record) Since(was *Record) []Change {
	if len(was.Log) == 0 {
		return r.Log
	}
	last := was.Log[len(was.Log)-1]
	for i, c := range slices.Backward(r.Log) {
		if c.Time.Equal(last.Time) && c.By == last.By && c.What == last.What {
			return r.Log[i+1:]
		}
	}
	return r.Log
}

func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// ErrState is a wish that does not go with the crawl's state.
var ErrState = errors.New("that cannot be done now")

// Parse reads a record; nil is one of which nobody has heard yet.
func Parse(value []byte) (Record, error) {
	r := Record{State: Waiting}
	if value == nil {
		return r, nil
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return r, fmt.Errorf("read the crawl's record: %w", err)
	}
	return r, nil
}

// ForceState changes the state, whatever it is.
func (r *Record) ForceState(to State, why string) { r.State, r.Why, r.Changed = to, why, time.Now() }

// Start lets the crawl begin, or go on. The settings are those of the first start; of a later one the given ones are
// changed, which must be some that nodes look up in the record while they run. seeded: seeds have come with it.
func (r *Record) Start(settings map[string][]string, seeded bool) error {
	switch {
	case r.State == Done && !seeded:
		return fmt.Errorf("%w: the crawl is done; add seeds to go on with it", ErrState)
	case r.State == Waiting && r.Seeds == 0:
		return fmt.Errorf("%w: the crawl has no seeds yet", ErrState)
	case r.Settings == nil:
		r.Settings = settings
	default:
		r.merge(settings)
	}
	r.ForceState(Running, "")
	return nil
}

// merge takes settings over; one without values is left out from now on.
func (r *Record) merge(settings map[string][]string) {
	for key, values := range settings {
		if len(values) == 0 {
			delete(r.Settings, key)
		} else {
			r.Settings[key] = values
		}
	}
}

// ChangeSettings changes settings of a crawl that was started. One without values is left out from now on.
func (r *Record) ChangeSettings(settings map[string][]string) error {
	if r.Settings == nil {
		return ErrNotStarted
	}
	r.merge(settings)
	return nil
}

// ErrNotStarted is a crawl without settings.
var ErrNotStarted = fmt.Errorf("%w: the crawl has not been started, and has no settings yet", ErrState)

// Set changes the state: to Paused, Running (of one that is paused), or Stopping.
func (r *Record) Set(to State) error {
	if r.State != to && !allowed(r.State, to) {
		return fmt.Errorf("%w: the crawl is %s", ErrState, r.State)
	}
	r.ForceState(to, "")
	return nil
}

// WhyLimit is why a crawl was stopped that has the pages it was to have.
const WhyLimit = "limit"

// StopAtLimit stops a crawl that runs because it has the pages it was to have.
func (r *Record) StopAtLimit() {
	if r.State == Running {
		r.ForceState(Stopping, WhyLimit)
	}
}

// CheckAdd returns an error unless seeds may be added.
func (r *Record) CheckAdd() error {
	if r.State == Done {
		return fmt.Errorf("%w: the crawl is done; start it with these URLs", ErrState)
	}
	return nil
}

func allowed(from, to State) bool {
	switch to {
	case Paused:
		return from == Running
	case Running:
		return from == Paused
	case Stopping:
		return from != Stopping // nodes may wait for a start of one that is done
	}
	return false
}

// DescribeSettings say what a change of settings is, for the log.
func DescribeSettings(settings map[string][]string) string {
	var said []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		said = append(said, key+"="+strings.Join(settings[key], ","))
	}
	return "set " + strings.Join(said, " ")
}

// Verb is what a person does who sets a state.
func (s State) Verb() string {
	switch s {
	case Paused:
		return "pause"
	case Running:
		return "resume"
	case Stopping:
		return "stop"
	}
	return string(s)
}

// DescribeAdded says that so many URLs were added.
func DescribeAdded(n int) string {
	if n == 1 {
		return "add 1 URL"
	}
	return fmt.Sprintf("add %d URLs", n)
}
