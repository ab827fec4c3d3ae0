package inspect

import "time"

// Owners are the owners of a cluster's hosts at one time.
type Owners struct {
	By      []OwnedBy // by name; empty if a hash determines owners
	Hosts   []Owned   // by owner, then by name
	More    int       // hosts omitted because of the limit
	Missing []string  // names without a known host
	Moving  bool      // members are changing, and hosts are moving
}

// An OwnedBy counts the hosts of a node.
type OwnedBy struct {
	Owner  string `json:"owner"` // its name
	Node   string `json:"node"`  // its identity
	Hosts  int    `json:"hosts"`
	Parked int    `json:"parked"` // of these, hosts that no node reaches
	Gone   bool   `json:"gone,omitempty"`
}

// An Owned is a host and its owner. JSON members may be added, but are never changed.
type Owned struct {
	Host    string    `json:"host"`
	Owner   string    `json:"owner"`             // the node's name
	Node    string    `json:"node"`              // its identity
	Gone    bool      `json:"gone,omitempty"`    // no longer a member; its hosts move to others
	Here    bool      `json:"here,omitempty"`    // the node whose folder was queried
	Address string    `json:"address,omitempty"` // of the node's API, if it has one
	State   HostState `json:"state"`
	Since   time.Time `json:"since,omitzero"`    // start of the current state
	Rounds  int       `json:"rounds,omitempty"`  // how often all nodes have failed to reach it
	Moved   bool      `json:"moved,omitempty"`   // moved here from a busier node
	Failed  []string  `json:"failed,omitempty"`  // names of the nodes that failed to reach it in the last round
	Again   time.Time `json:"again,omitzero"`    // time of the next round
	Backups []string  `json:"backups,omitempty"` // in a mesh crawl: the nodes that remember the host's URLs
}

// Links counts links to a host without an owner. The nodes that found them store them.
type Links struct {
	Links  int `json:"links"`
	Nodes  int `json:"nodes"`            // that have such links
	Silent int `json:"silent,omitempty"` // nodes that have not answered
}

// A HostState describes how a node owns a host.
type HostState string

// The states.
const (
	HostReached HostState = "reached" // the owner reaches it, or is the only candidate left (then Rounds is not 0)
	// The owner stores its URLs without fetching: no node is known to reach it.
	HostParked   HostState = "parked"
	HostPromised HostState = "promised" // on its way from the previous owner
	HostHashed   HostState = "hash"     // assigned by a hash, whichever node reaches it
	HostGiven    HostState = "given"    // assigned by the master
)
