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

// A State is the desired state of a crawl.
type State string

// The states. A crawl without a record is Waiting.
const (
	Waiting  State = "waiting"  // not started yet
	Running  State = "running"  // nodes fetch pages
	Paused   State = "paused"   // nodes stay, and fetch nothing
	Stopping State = "stopping" // nodes end; a later start resumes the crawl
	Done     State = "done"     // no URLs are left
)

// A Record is the state and the settings that all nodes of a crawl share.
type Record struct {
	State    State               `json:"state"`
	Why      string              `json:"why,omitempty"`    // of a stop that no user requested
	Changed  time.Time           `json:"changed"`          // time of the last change of State, by the clock of its author
	Started  time.Time           `json:"started,omitzero"` // time of the last Start, by the clock of its author
	Settings map[string][]string `json:"settings,omitempty"`
	Seeds    uint64              `json:"seeds"`         // number of chunks of seeds
	Log      []Change            `json:"log,omitempty"` // actions of users, the latest last
}

// A Change is an action of a user.
type Change struct {
	Time time.Time `json:"time"` // by the clock of its author
	By   string    `json:"by,omitempty"`
	What string    `json:"what"`
}

const (
	maxChanges  = 20 // of a record
	maxBy       = 100
	maxWhat     = 300         // bytes of each
	retryWindow = time.Minute // an equal change within this time is a retry
)

// AddChange records an action of a user. Only the last ones are kept.
func (r *Record) AddChange(by, what string) {
	c := Change{time.Now().UTC(), truncate(by, maxBy), truncate(what, maxWhat)}
	if n := len(r.Log); n > 0 && r.Log[n-1].By == c.By && r.Log[n-1].What == c.What &&
		c.Time.Sub(r.Log[n-1].Time) < retryWindow {
		return
	}
	all := append(slices.Clone(r.Log), c)
	r.Log = all[max(len(all)-maxChanges, 0):]
}

// Since returns the changes that an earlier record does not have.
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

// ErrState is returned for a change that the crawl's state does not allow.
var ErrState = errors.New("not possible now")

// Parse decodes a record; nil is a crawl without one.
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

// ForceState sets the state, whatever the current one is.
func (r *Record) ForceState(to State, why string) { r.State, r.Why, r.Changed = to, why, time.Now() }

// Start starts or resumes the crawl. The first start sets all settings, a later one changes the given ones, which must
// be settings that nodes read from the record while they run. seeded reports whether seeds were added with the start.
func (r *Record) Start(settings map[string][]string, seeded bool) error {
	switch {
	case r.State == Done && !seeded && !r.Revisits(settings):
		return fmt.Errorf("%w: the crawl is done; add seeds to resume it", ErrState)
	case r.State == Waiting && r.Seeds == 0:
		return fmt.Errorf("%w: the crawl has no seeds yet", ErrState)
	case r.Settings == nil:
		r.Settings = settings
	default:
		r.merge(settings)
	}
	r.ForceState(Running, "")
	r.Started = r.Changed
	return nil
}

// Settings for recrawls: the intervals, and whether the crawl ends after all due pages are visited.
const (
	RecrawlKey = "recrawl"
	DueKey     = "due"
)

// Revisits reports whether the crawl visits pages again once these settings are changed.
func (r *Record) Revisits(changed map[string][]string) bool {
	for _, key := range []string{RecrawlKey, DueKey} {
		values, is := changed[key]
		if !is {
			values = r.Settings[key]
		}
		if len(values) > 0 {
			return true
		}
	}
	return false
}

// merge changes settings. A setting without values is removed.
func (r *Record) merge(settings map[string][]string) {
	for key, values := range settings {
		if len(values) == 0 {
			delete(r.Settings, key)
		} else {
			r.Settings[key] = values
		}
	}
}

// ChangeSettings changes settings of a crawl that was started. A setting without values is removed.
func (r *Record) ChangeSettings(settings map[string][]string) error {
	if r.Settings == nil {
		return ErrNotStarted
	}
	r.merge(settings)
	return nil
}

// ErrNotStarted is returned for a crawl without settings.
var ErrNotStarted = fmt.Errorf("%w: the crawl has not been started, and has no settings yet", ErrState)

// Set changes the state to Paused, Running (of a paused crawl) or Stopping.
func (r *Record) Set(to State) error {
	if r.State != to && !allowed(r.State, to) {
		return fmt.Errorf("%w: the crawl is %s", ErrState, r.State)
	}
	r.ForceState(to, "")
	return nil
}

// IsActive reports whether nodes should take part in the crawl.
func (r *Record) IsActive() bool { return r.State == Running || r.State == Paused }

// StopAtLimit stops a crawl that has reached a limit.
func (r *Record) StopAtLimit(why string) {
	if r.State == Running || r.State == Paused && why == WhyTime {
		r.ForceState(Stopping, why)
	}
}

// CheckAdd returns an error if seeds cannot be added.
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
		return from != Stopping // a done crawl may be stopped: its nodes may wait for a start
	}
	return false
}

// DescribeSettings describes a change of settings, for the log.
func DescribeSettings(settings map[string][]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		pairs = append(pairs, key+"="+strings.Join(settings[key], ","))
	}
	return "set " + strings.Join(pairs, " ")
}

// Verb returns the user action that leads to a state.
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

// DescribeAdded describes the addition of n URLs, for the log.
func DescribeAdded(n int) string {
	if n == 1 {
		return "add 1 URL"
	}
	return fmt.Sprintf("add %d URLs", n)
}
