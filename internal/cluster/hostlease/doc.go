// Package hostlease keeps several crawls of one cluster from visiting a host more often than one crawl would.
//
// In one crawl each host has one owner, whose frontier keeps the delays. In another crawl the same host may have
// another owner. So while more than one crawl is active, a process may send requests to a host only while it holds the
// host's lease, and it passes the lease on with the time of the next permitted request. Within a process, its crawls
// take turns under the same lease.
//
// # Processes
//
// Each process has an entry in a registry that all processes watch: its active crawls, and whether it is open, which
// means that it visits hosts without leases. The entry is the process's own lease: it is renewed by compare-and-set,
// and counts from before the process asked for the renewal. Another process deletes an entry that was not renewed for
// [Timing.TTL] and [Timing.Margin]. Then a renewal fails: the process has lost its leases, and continues under a new
// identity. Only clock rates must agree.
//
// A process may be open for its only crawl while no other entry names another crawl. A process may visit hosts for a
// crawl with leases while its entry names the crawl, and no entry is open for another crawl. The registry orders all
// writes, and a process decides by a state in which it sees its own write. So of two processes that disagree, at least
// one waits for the other. A process that stops being open first lets the delays of its last requests pass.
//
// With one active crawl all its processes are open: there are no messages and no writes beyond the entries.
//
// # Leases of hosts
//
// A host has a record in a second registry, whose records expire when they have not been written for long. It names the
// holder and changes by compare-and-set. A process acquires the lease of a host without a record, or with a record of a
// process that has no entry any more. Otherwise it sends the holder a request. The holder finishes its burst of visits,
// writes the requester into the record, and notifies it. All messages may be lost: a requester that waits too long
// reads the record again.
//
// A lease has no end of its own. It is valid while the holder's entry is. So a lease that nobody requests costs
// nothing, and the leases of a dead process become free when its entry is deleted.
//
// [Machine] is the state machine; it has no clock, network or goroutines. [Keeper] runs it over a bus.
package hostlease
