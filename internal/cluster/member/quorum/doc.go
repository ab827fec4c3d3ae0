// Package quorum implements membership by leases and a member table, in a registry that a quorum of servers stores.
//
// # Membership
//
// The table changes by compare-and-set only. Each node has a lease and renews it. A node that sees a lease unchanged
// for the lease's duration and a margin, by its own clock, revokes it by compare-and-set. Then it removes the lease's
// owner from the table.
//
// A node counts its lease from before its request for renewal. So it stops before any other node revokes the lease,
// whatever the clocks show; only their rates must agree, to within the margin. A node whose lease is revoked has lost
// its membership for good. Other nodes recover its state; it deletes its own copy and joins again as a new node.
//
// A few members, the guards, watch the leases of all members. The other members watch the leases of the guards.
//
// # Owners of hosts
//
// Each change of the members starts a new epoch, under which the strategy places hosts. At any time, exactly one node
// holds the state of a host: its pending and its known URLs.
//
// A node that holds hosts of another owner under the new epoch stops these hosts and waits for their requests in
// flight. Then it transfers them to their owners in chunks. The receiver journals each chunk. After the last chunk it
// owns the hosts, and the sender forgets them.
//
// Until a node has heard from all nodes which hosts they may transfer to it, it restricts itself to the hosts that it
// owned all along. It neither crawls its other hosts nor accepts links to them; those links stay in the outboxes of
// their finders.
//
// If the sender or the receiver dies during a transfer, or the epoch ends, it may be unknown whether the receiver got
// the last chunk. The sender, or the takeover node of a dead one, then queries the receiver or its takeover node,
// before it sends these hosts to any other node. So no host is ever held twice, and none is lost.
//
// If the strategy is not a Placer, single hosts move by epochs of their own. Each such epoch combines the moves that
// many nodes requested (ownmoves.go).
//
// # Failed nodes
//
// A dead node leaves the log to which its journal was shipped. The live node with the least hash of both names is the
// takeover node. It rebuilds the dead node's state from the log, and transfers it as the dead node would have.
//
// # End of an epoch
//
// When all members have heard from all others, the epoch is finalized. The logs of failed nodes are then no longer
// needed, and earlier epochs are dropped. Nodes join and leave only at this point, one at a time. Nodes may die at any
// time.
//
// # Parts
//
// A [Member] routes events to its parts. Each part is a state machine of its own:
//
//	ownLease     this node's lease: until when it may act
//	peerLeases   the leases of other nodes: revocation, and their finished epochs
//	proposals    this node's changes of the table
//	ownership    placement of hosts by epoch; the View that workers query
//	ownMoves     requested moves of this node's single hosts, and their record
//	moveRecords  records of moves that this node has read
//	batches      offered batches of moves, at a guard
//	exports      hosts on their way to other nodes; a sender has the chunks of one export
//	arrivals     transfers to this node
//	takeovers    recovered state of dead nodes
package quorum
