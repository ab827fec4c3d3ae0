package inspect

import "time"

// Owners are whose the hosts of a cluster are, as it has it at one time.
type Owners struct {
	By      []OwnedBy // by name; none where owners follow from a hash
	Hosts   []Owned   // by owner, then by name
	More    int       // hosts that are not among them because there are too many
	Missing []string  // names of which nothing is known
	Moving  bool      // members change, and hosts with them
}

// An OwnedBy says how many hosts a node owns.
type OwnedBy struct {
	Owner  string `json:"owner"` // its name
	Node   string `json:"node"`  // its identity
	Hosts  int    `json:"hosts"`
	Parked int    `json:"parked"` // of these, those that nobody reaches
	Gone   bool   `json:"gone,omitempty"`
}

// An Owned is whose a host is. Its fields in JSON stay what they are; there may be more of them one day.
type Owned struct {
	Host    string    `json:"host"`
	Owner   string    `json:"owner"`             // the node's name
	Node    string    `json:"node"`              // its identity
	Gone    bool      `json:"gone,omitempty"`    // it is no member any more: its hosts come to others
	Here    bool      `json:"here,omitempty"`    // it is the node whose folder was asked
	Address string    `json:"address,omitempty"` // where the node can be asked, if it says so
	State   HostState `json:"state"`
	Since   time.Time `json:"since,omitzero"`    // that is so
	Rounds  int       `json:"rounds,omitempty"`  // how often all nodes have failed to reach it
	Moved   bool      `json:"moved,omitempty"`   // it has come, or comes, from a node that had more to do
	Failed  []string  `json:"failed,omitempty"`  // names of the nodes that have, the last time
	Again   time.Time `json:"again,omitzero"`    // when all try again
	Backups []string  `json:"backups,omitempty"` // where there is no centre: the nodes that remember the host's URLs
}

// Links are those to a host that is nobody's: they wait with the nodes that have met them.
type Links struct {
	Links  int `json:"links"`
	Nodes  int `json:"nodes"`            // that have them
	Silent int `json:"silent,omitempty"` // nodes that have not said whether they have some
}

// A HostState says how its owner has a host.
type HostState string

// The states.
const (
	HostReached HostState = "reached" // its owner reaches it, or has been left alone with it: then Rounds is not 0
	// its owner keeps what waits there, and asks nothing of it: nobody is known to reach it
	HostParked   HostState = "parked"
	HostPromised HostState = "promised" // its owner gets it from the one who had it
	HostHashed   HostState = "hash"     // it is its owner's by a hash, whoever reaches it
	HostGiven    HostState = "given"    // it is its owner's because the master has given it to that node
)
