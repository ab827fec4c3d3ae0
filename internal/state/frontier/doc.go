// Package frontier stores the pending URLs by host, and decides which host is visited next, and when.
//
// # Politeness
//
// The frontier enforces politeness. A host has at most as many workers as connections are allowed to it. After a visit,
// its next time is the delay after the end of the response, the time of a Retry-After, or a backoff that doubles with
// each failure.
//
// Within a host, the URL with the least rank goes first, and the oldest of equal ranks. The caller supplies the rank
// and may change it (ranking.go). Eligible hosts go in the order of their times. If ranks change, they go in the order
// of their first URLs' ranks instead, with aging against starvation (schedule.go).
//
// # Classes of hosts
//
// A suspect is a host that failed or was slow. Suspects together get a quarter of the slots, so that dead hosts, which
// occupy a slot for a whole timeout, do not block the others. Beyond their quarter, suspects get the slots that no
// sound host needs, except a sixteenth of all slots.
//
// An inactive host has not been visited yet, or has had its session of 16 visits. It goes when no host in a session is
// due. So a crawl of a million hosts works on only as many as keep its workers busy. It reuses their open connections
// and TLS sessions, and each host still has its turn. Heritrix has inactive queues, too: there a queue is active until
// its budget is spent, here until its visits are made.
//
// # Memory and disk
//
// With a folder ([Open]) the frontier stays within a memory budget. The design is that of BUbiNG's workbench and
// virtualizer (Boldi, Marino, Santini, Vigna: BUbiNG, Massive Crawling for the Masses, 2014). A host that has not been
// used for long becomes cold: it takes 40 bytes of memory, and its queue is on disk. It is loaded a second before its
// time.
//
// BUbiNG has a queue on disk for each host. Here the fronts of cold hosts' queues are in buckets by time. A few long
// reads load all hosts that are due together. A push to a cold host appends to its bucket, without a read.
//
// A front has 64 items. The rest of a queue is in a tree of sorted blocks, whose links contain the first key below
// them. So the order within a host is exact, however long its queue is; BUbiNG's is first in, first out. Buckets and
// blocks are in segments, files that only grow. A segment that is mostly unused is emptied and removed.
//
// # Parts
//
// [Frontier] takes its lock and calls its parts. Each part has its own type and state. Its comment names what guards
// it; if it names nothing, the frontier's lock does.
//
// In memory:
//
//   - workbench: the hosts in memory
//   - schedule: which host goes next
//   - politeness: when a host may be visited
//   - addresses: the turns of hosts at one server address
//   - ranking: the ranks of items
//   - suppression: the items to be dropped
//   - dispatcher: visits, from handing an item out to its result
//   - leader: the one caller of Next that waits
//
// On disk:
//
//   - segments (with retention and writeBehind), pager, segmentWriter: files of frames, and reading and writing them
//   - queueStore: the items of a host in memory, and in blocks
//   - coldHosts, buckets, bucketReader: the records of cold hosts, and the fronts of their queues
//   - residents: the order in which hosts leave memory
//   - virtualizer: loading and evicting hosts
//   - compactor: emptying segments
//   - removals: the queues of removed hosts
//   - saver, Cut, loader: checkpoints
//   - diskWorker (with diskLock and readQueue): all work that waits for the disk
//
// [Inspector] and [HostIterator] only read.
//
// Disk operations run without the frontier's lock. Either one caller of Next at a time (diskWorker) reads and writes
// for all, or the caller that needs data on disk reads it (pager).
//
// # Crashes
//
// The last checkpoint ([Frontier.Cut]) survives a crash. The caller restores later changes from its journal: with
// Restore for URLs that were found, and with Suppress for URLs that were done. No segment of the last checkpoint is
// changed or removed.
//
// # Inexact cases
//
//   - Cold hosts are loaded in the order of their next times only to within a quarter of a second, or a sixteenth of
//     the frontier's lag. For equal times the order is not by age, and ranks do not matter.
//   - A change of the rank of items in blocks takes effect when the block is read, or when an eighth of them has
//     changed.
//   - A QueueLast item of a host that was cold goes behind rank 4095 at most.
//   - The address of a cold host is forgotten. So a host that is alone at its address may have to wait for a turn that
//     it reserved itself.
//
// docs/decisions/frontier.md compares the package with queues in an embedded store.
package frontier
