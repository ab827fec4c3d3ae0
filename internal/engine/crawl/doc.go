// Package crawl runs the crawl loop of one node.
//
// A URL passes these steps, in the order of the code:
//
//	add        admission.go  admits seeds (addSeeds) and, called from commit, links (addLinks)
//	judge      policy        applies scope, filters, block list and depth; rejected URLs are counted or recorded as
//	                         skipped with the rule
//	seen       admission.go  drops known URLs and passes new ones; the next merge decides uncertain ones
//	                         (checkpoint.go)
//	frontier   package       queues the URL by host; hands it to a worker when the host is due
//	visit      visit.go      fetches robots.txt first (robots.go), waits its turn at the server's address, checks the
//	                         limits
//	fetch      visit.go      makes one exchange; after a failure the URL is requeued or abandoned (outcome.go)
//	parse      visit.go      extracts page and links from the bytes, in the same goroutine
//	commit     apply.go      writes the record to the stores, and the done mark and the new links to the journal as one
//	                         batch; then adds the new links to the frontier, which closes the loop
//	done       package       frontier.Done sets the time of the host's next visit
//
// The caller can change or veto links, requests and records with [Hooks] (hooks.go). A link hook runs before the link
// is judged, and a request hook before the request is sent. A record hook runs before anything of the record is stored.
//
// # Parts
//
// [New] makes the parts of an engine from the lowest to the highest, and gives each the parts that it uses. A part
// calls those that were made before it and none that were made after, but for a run's stopper.
//
//	names, ends, known, line, origins, ranking, trapGuard    what the crawl has met
//	limits, journalCounts, scopeSeeds                        counts, and the seeds that the scope follows from
//	outgoing, holds, admission, batchWriter, abandoner       a batch on its way into the journal
//	robotsGate, outcomes, permits, visits, worker, runner    visits
//	Links, Seeding, Dispatches, recrawls                     URLs that no page of this node has brought
//	Checkpoints, Inspector, rankKeeper, stuckGuard           beside the visits
//	Engine                                                   starts and ends all of them
//
// # Durability
//
// Each known URL is in one of these states, and the journal has the matching entry:
//
//   - Pending: it is in the frontier, being visited, or abandoned with its origin for this run (package statefile). The
//     journal has its found entry and no done entry.
//   - Done.
//   - Deferred or filtered.
//   - Undecided: it may be known already, and seen will decide. The journal has its undecided entry.
//
// Group commit first makes the record files durable. It then writes the batch that marks their URLs as done and
// contains the lengths of the files. A batch changes seen, the digests and the frontier while the ledger's gate, a
// lock, is held. So between two batches these views always match the journal.
//
// At such a moment a checkpoint (checkpoint.go) freezes the views and writes them to disk while the crawl continues.
// The part of the journal before the checkpoint is then dropped. Package recovery opens the checkpoint and replays the
// rest of the journal. A crash therefore loses no URL. URLs in flight, or finished since the last commit, are fetched
// again.
//
// # Crawls of several nodes
//
// A [Router] knows which hosts this node owns. A link to another node's host is not offered to seen but put into the
// outbox (outbox.go, package exchange). The journal records it in the batch of the page that contains it.
// [Links.Batches] returns the link until [Links.Answered] reports that the host's owner has it. A checkpoint writes
// the links left in the outbox to the journal again. The owner admits the link with [Links.TakeLinks] (links.go),
// which returns when the link is in the owner's journal and the journal is replicated. So at least one node holds each
// link at any time. If two nodes hold it, seen recognizes the second copy. While the outbox is full, workers fetch no
// new URL.
//
// In a mesh crawl, links are claimed (claims.go): a node does not queue a link because one of its pages contains it.
// All links go through the outbox to the nodes that remember which URLs are known. These nodes dispatch new URLs to the
// node that will fetch them ([Dispatches.TakeDispatched]). A page is reported as finished ([Parts].Finished) once its links
// have left the outbox, so that losing a node with its disk loses no link. Hosts are not handed over but released
// ([Dispatches.ReleaseHosts]), and their pending URLs are dispatched to another node.
//
// Before each request the engine asks the router whether the node's lease holds (router.go). A persistent run
// (keepopen.go) does not end when the queues are empty.
//
// In other clusters, a host that changes owner is handed over (package transfer). One node holds the host's pending
// URLs at any time, whichever node fails during the transfer.
package crawl
