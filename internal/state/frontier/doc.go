// Package frontier holds the URLs that wait, by host, and decides which host is next and when. It is where politeness
// is kept.
//
// A host is handed out to no more workers at once than it may have connections, and comes back with its next time: the
// delay after the end of an answer, the time a Retry-After names, or a wait that doubles with each failure. Within a
// host the URL goes first whose rank is the least, and of equal ones the oldest: who pushes it gives the rank, and may
// move it (ranks.go). Hosts whose time has come are handed out in the order of their times, or, where ranks change, in
// that of their first URLs' ranks, so that none starves (ready.go).
//
// Hosts fall into classes. A suspect is a host that failed or was slow. Suspects together get a quarter of the places,
// so that dead hosts, each of which holds a place for a whole time limit, leave the others' places free; beyond that
// they get what no sound host has come for, all but a sixteenth. An inactive host has not been visited yet, or has had
// its session of 16 visits. It goes when no host in a session is due: so a crawl of a million hosts works on as many at
// once as keep its workers busy, over open connections and TLS sessions, and each host still has its turn. Heritrix has
// inactive queues, too; there a queue is active until it has spent its budget, here until it has had its visits.
//
// With a folder ([Open]) the frontier stays within a budget of memory, as BUbiNG's does (Boldi, Marino, Santini, Vigna:
// BUbiNG, Massive Crawling for the Masses, 2014), whose workbench and virtualizer these are. A host that nobody has
// touched for long becomes cold: 40 bytes in memory, its queue on disk. It comes back a second before its time.
//
// Where BUbiNG keeps a queue on disk for each host, here the fronts of cold hosts' queues are in buckets by time: all
// hosts that come due together come back with a few long reads, and what is pushed to a cold host is appended to its
// bucket, without reading anything. What does not fit into a front, 64 items, is in a tree of sorted blocks, whose
// links know the first key below them, so that the order within a host is exact however large its queue is; BUbiNG's is
// first in, first out. Buckets and blocks are in segments, files that only grow; one that is mostly out of use is
// emptied and removed.
//
// The disk is waited for without the frontier's lock: by one caller of Next at a time, who writes and reads for all,
// and by who asks for what is not in memory. See resident.go, behind.go and disk.go.
//
// What survives a crash is the last checkpoint ([Frontier.Cut]); what came after it is the caller's journal to bring
// back, with Restore for what was found and Suppress for what was done. No segment that the last checkpoint names is
// changed or removed.
//
// What is not exact: among cold hosts those with the least next time come back first only to a quarter of a second, or
// a sixteenth of what the frontier is behind, where times are equal the order is not by age, and ranks do not matter; a
// change of the rank of what is in blocks is known when the block is read, or when an eighth of them has changed; a
// Late item of a host that was cold goes behind rank 4095 at most; a host's address is forgotten when it becomes cold,
// so that one alone at its address may have to wait for a turn that it takes from itself.
//
// docs/decisions/frontier.md compares it with queues in an embedded store.
package frontier
