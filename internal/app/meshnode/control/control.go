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

// A Verb is the kind of a request.
type Verb string

// The verbs.
const (
	Read       Verb = "read"   // return the crawl's record
	Inspect    Verb = "look"   // return the record and the nodes' reports
	Start      Verb = "start"  // start the crawl with Settings; Seeded: seeds were added for it
	Tune       Verb = "tune"   // change Settings, if the record has Version
	Set        Verb = "set"    // set the State
	Add        Verb = "add"    // add Seeds; Seeded: for a start
	Locate     Verb = "locate" // return the nodes of Hosts
	CountKnown Verb = "know"   // count known URLs
	QueryAll   Verb = "query"  // send Query to all nodes
	Results    Verb = "report" // return one report of all nodes on the crawl
)

// A Request is a command's request to a node.
type Request struct {
	ID       uint64              `json:"id"`
	Do       Verb                `json:"do"`
	By       string              `json:"by,omitempty"` // the user, for the record's history
	Version  uint64              `json:"version,omitempty"`
	State    desired.State       `json:"state,omitempty"`
	Settings map[string][]string `json:"settings,omitempty"`
	Seeds    string              `json:"seeds,omitempty"` // URLs, one per line
	Seeded   bool                `json:"seeded,omitempty"`
	Hosts    []string            `json:"hosts,omitempty"`
	URLs     []string            `json:"urls,omitempty"` // canonical URLs
	Query    json.RawMessage     `json:"query,omitempty"`
}

// The maximum number of hosts and URLs per request.
const (
	MaxHosts = 256
	MaxURLs  = 256
)

// A Response is the node's response, including its current record of the crawl.
type Response struct {
	ID        uint64         `json:"id"`
	Error     string         `json:"wrong,omitempty"` // why the request failed; "": it succeeded
	Fault     Fault          `json:"fault,omitempty"` // kind of the error
	Record    desired.Record `json:"record"`
	Version   uint64         `json:"version"`
	Sums      *Sums          `json:"sums,omitempty"`
	Locations []Location     `json:"locations,omitempty"`
	Known     Known          `json:"known,omitzero"`
	Answers   *Answers       `json:"answers,omitempty"`
	// one report of all nodes, and the number of parts of the ID space without an answer
	Results json.RawMessage `json:"results,omitempty"`
	Missing int             `json:"missing,omitempty"`
}

// Answers are the nodes' answers to a query.
type Answers struct {
	Nodes   []Answer `json:"nodes"`
	Unasked int      `json:"unasked"` // nodes that were not asked because there are too many
}

// An Answer is the answer of one node.
type Answer struct {
	Node   string          `json:"node"`
	Answer json.RawMessage `json:"answer,omitempty"` // missing: no answer
}

// Known counts how many URLs are known to the nodes that remember them.
type Known struct {
	New    int `json:"new"`
	Known  int `json:"known"`
	Unsure int `json:"unsure"` // without an answer in time
}

// A Fault is a kind of error that clients handle.
type Fault string

// The faults; other errors have none.
const (
	FaultState Fault = "state" // desired.ErrState
	FaultStale Fault = "stale" // the record has a newer version
)

// ErrStale means that a change is based on an outdated version of the record.
var ErrStale = errors.New("another user has changed the crawl's record")

// Err returns the error of the response; nil if it succeeded.
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

// A remoteError is an error reported by another process.
type remoteError struct {
	text string
	kind error
}

func (r *remoteError) Error() string { return r.text }
func (r *remoteError) Unwrap() error { return r.kind }

// Sums are the sums of all nodes' reports, computed over the tree of their IDs a few seconds ago.
type Sums struct {
	Nodes   int     `json:"nodes"`
	Missing int     `json:"missing"` // parts of the ID space without an answer
	Idle    int     `json:"idle"`    // nodes with nothing to do
	Figures []int64 `json:"figures"`
	// Former nodes and the pages that they fetched, as far as current nodes know.
	DepartedNodes int      `json:"gone"`
	DepartedPages int64    `json:"gone_pages"`
	Reports       [][]byte `json:"reports"` // of all nodes, or of some if there are many

	By   strategy.Node `json:"by"`   // the node that gathered them
	Took time.Duration `json:"took"` // in nanoseconds, like Age
	Age  time.Duration `json:"age"`
}

// A Location is the assignment of a host, as seen by one node.
type Location struct {
	Host    string          `json:"host"`
	Target  strategy.Node   `json:"target"`  // the node that fetches it; "": none found
	Backups []strategy.Node `json:"backups"` // the nodes that remember its URLs, in order of priority
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

var errUnknownVerb = errors.New("this node's kumo does not know the request")
