// Package control defines the requests that commands send to a node of a mesh crawl, and the answers. Any node can
// answer, because changes that reach one node spread to all. A request is repeated until it is answered. Requests are
// idempotent, so a request that is executed twice does no harm.
package control

import (
	"encoding/json"
	"errors"
	"time"

	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
)

// The first byte of a message.
const (
	KindRequest = 'q'
	KindReply   = 'r'
)

// A Verb is what is asked for.
type Verb string

// The verbs.
const (
	Read         Verb = "read"   // the crawl's record
	Inspect      Verb = "look"   // the record, and what all nodes say of themselves
	Start        Verb = "start"  // with Settings; Seeded: seeds were added for it
	Tune         Verb = "tune"   // Settings, at a Version of the record
	Set          Verb = "set"    // the State
	Add          Verb = "add"    // Seeds; Seeded: they are for a start
	Locate       Verb = "locate" // the Hosts
	CountKnown   Verb = "know"   // how many of the URLs are known
	CountBlocked Verb = "block"  // how much of what waits the Rules would leave out
)

// A Question is what a command asks a node.
type Request struct {
	ID       uint64              `json:"id"`
	Do       Verb                `json:"do"`
	By       string              `json:"by,omitempty"` // who asks, as the record notes of changes
	Version  uint64              `json:"version,omitempty"`
	State    desired.State       `json:"state,omitempty"`
	Settings map[string][]string `json:"settings,omitempty"`
	Seeds    string              `json:"seeds,omitempty"` // URLs, a line each
	Seeded   bool                `json:"seeded,omitempty"`
	Hosts    []string            `json:"hosts,omitempty"`
	URLs     []string            `json:"urls,omitempty"` // canonical ones
	Rules    []string            `json:"rules,omitempty"`
}

// How many hosts and URLs a question may have.
const (
	MaxHosts = 256
	MaxURLs  = 256
)

// An Answer is what the node says, the crawl's record among it as it is then.
type Response struct {
	ID        uint64         `json:"id"`
	Error     string         `json:"wrong,omitempty"` // why nothing was done; "": it was
	Fault     Fault          `json:"fault,omitempty"` // what kind of wrong that is
	Record    desired.Record `json:"record"`
	Version   uint64         `json:"version"`
	Sums      *Sums          `json:"sums,omitempty"`
	Locations []Location     `json:"locations,omitempty"`
	Known     Known          `json:"known,omitzero"`
	Counts    *Counts        `json:"counts,omitempty"`
}

// Counts are what nodes have counted that rules would leave out.
type Counts struct {
	Nodes   []Count `json:"nodes"`
	Unasked int     `json:"unasked"` // nodes that were not asked: there are too many
}

// A Count is what one node has counted.
type Count struct {
	Node  string          `json:"node"`
	Count json.RawMessage `json:"count,omitempty"` // missing: it has not answered
}

// CountKnown is how many URLs are known to the nodes that remember them.
type Known struct {
	New    int `json:"new"`
	Known  int `json:"known"`
	Unsure int `json:"unsure"` // nobody has answered for them in time
}

// A Fault is a kind of error that a command knows.
type Fault string

// The faults; any other error has none.
const (
	FaultState Fault = "state" // desired.ErrState
	FaultStale Fault = "stale" // the record is another version by now
)

// ErrStale is a change of a version of the record that is not the newest any more.
var ErrStale = errors.New("somebody else has changed the crawl's record meanwhile")

// Err is what was wrong; nil if nothing was.
func (a *Response) Err() error {
	switch {
	case a.Error == "":
		return nil
	case a.Fault == FaultState:
		return &remoteError{a.Error, desired.ErrState}
	case a.Fault == FaultStale:
		return &remoteError{a.Error, ErrStale}
	}
	return errors.New(a.Error)
}

// A refusal is an error as another process has said it.
type remoteError struct {
	text string
	kind error
}

func (r *remoteError) Error() string { return r.text }
func (r *remoteError) Unwrap() error { return r.kind }

// Sums are what all nodes say of themselves, added up over the tree that their ids make, some seconds ago.
type Sums struct {
	Nodes   int     `json:"nodes"`
	Missing int     `json:"missing"` // parts of the space of ids for which nobody has answered
	Idle    int     `json:"idle"`    // nodes that have nothing to do
	Figures []int64 `json:"figures"`
	// nodes that are none any more, and how many pages these have fetched, as far as those know who are there
	DepartedNodes int      `json:"gone"`
	DepartedPages int64    `json:"gone_pages"`
	Reports       [][]byte `json:"reports"` // of some nodes, or of all where there are few

	By   strategy.Node `json:"by"`   // who has gathered them
	Took time.Duration `json:"took"` // in nanoseconds, as is Age
	Age  time.Duration `json:"age"`
}

// A Location says whose a host is, as one node sees it.
type Location struct {
	Host    string          `json:"host"`
	Target  strategy.Node   `json:"target"`  // the node that fetches it; "": nobody was found
	Backups []strategy.Node `json:"backups"` // those that remember its URLs, the first first
}

func frame(kind byte, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	return append([]byte{kind}, data...), err
}

func faultOf(err error) Fault {
	switch {
	case errors.Is(err, desired.ErrState):
		return FaultState
	case errors.Is(err, ErrStale):
		return FaultStale
	}
	return ""
}

var errUnknownVerb = errors.New("this node's kumo does not know that question")
