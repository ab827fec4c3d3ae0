// Package quorum is membership by a registry that a quorum of servers keeps: leases, and a table of members that
// changes by compare-and-set alone.
//
// # Membership
//
// The registry has one table of members, which changes by compare-and-set alone, and a lease for each node, which the
// node renews. Whoever sees a lease unchanged for its time and a margin, by its own clock, revokes it, by
// compare-and-set on the lease; then it takes the node out of the table. A node counts its lease from before it asked
// for the renewal, so it stops before anybody revokes, whatever the clocks say; only their rates must agree, to the
// margin. A node whose lease is revoked has lost its place for good: its state is folded by others, it forgets its own,
// and joins anew as another node.
//
// # Who holds a host
//
// Each change of members is a new epoch, under which the strategy places hosts. What is known of a host, URLs that wait
// and URLs that are known, is held by exactly one node at any time. A node that holds hosts which are another's under
// the new epoch stops them, waits until no request to them is under way, and transfers them to their owners, in chunks;
// the receiver journals each, and once it has the last the hosts are its own, and the sender forgets them. Until it has
// heard from all nodes from which hosts may come to it, a node does not crawl those of its hosts that it did not own
// all along, nor take links to them: they stay in the outboxes of those who found them.
//
// A sender that does not know whether the receiver got the last chunk, because one of them died or because the epoch
// ended, asks it before it sends these hosts to anybody else. So no host is ever held twice, and none is lost.
//
// Where the strategy is no Placer, single hosts move by epochs of their own, each of which takes what many nodes want
// moved (moves.go).
//
// A node that died has left an estate: the log to which its journal was shipped. One of the living, whom the strategy
// of estates names (the least hash of both names), folds the log into what the dead one held, and transfers that as the
// dead one would have.
//
// A few members, the guards, watch the leases of all; the others watch theirs.
//
// When all members have heard from all, the epoch is settled: estates are done with, and earlier epochs are forgotten.
// Nodes join and leave only then, one at a time; nodes die at any time.
package quorum
