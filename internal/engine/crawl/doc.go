// Package crawl is the engine: the loop of one node.
//
// The life of a URL, in the order of the code:
//
//	add        admission.go  seeds come in here (addSeeds), and links by the same way (addLinks), from commit
//	judge      policy        scope, filters, block list, depth: out → counted or skipped, with the rule kept
//	seen       admission.go  met before → dropped; new → on; perhaps → decided by its next merge (checkpoint.go)
//	frontier   package       to its host's queue; handed to a worker when the host's time has come
//	visit      visit.go      its host's robots.txt first (robots.go), its turn at the server's address, the limits
//	fetch      visit.go      one exchange; no answer, or a bad one → back to the queue or given up (outcome.go)
//	parse      visit.go      bytes → page and links, in the same goroutine
//	commit     apply.go      the record to the stores, done mark and new links to the journal as one batch, then the
//	                         new links to the frontier: the only loop
//	done       package       frontier.Done sets the host's next time
//
// Who runs the engine may have a word on links, requests and records ([Hooks], hooks.go): on a link before it is
// judged, on a request before it is made, on a record before anything of it is kept.
//
// # How nothing gets lost
//
// A URL is in one of four places: in the frontier, under way, or given up with its host for this run
// (package statefile), and then the journal has its found entry and no done entry; done; set aside or left out; or it
// may have been met before, and waits for seen to decide (its undecided entry). Group commit makes record files durable
// first, then writes the batch that marks their URLs as done and names the files' lengths. What a batch says and what
// it does to seen, the digests and the frontier happens within one hold of the ledger's gate, so that at any moment
// between two batches these are what the journal says.
//
// At such a moment a checkpoint (checkpoint.go) freezes them and brings them to the disk while the crawl goes on, and
// the journal's part before is dropped. Package recovery opens them and reads the journal's rest back. So a crash loses
// no URL; what was under way, or finished since the last commit, is fetched again.
//
// # Where several nodes share a crawl
//
// A [Router] says whose hosts are. A link to a host of another node is not offered to seen but put into the outbox
// (outbox.go, package exchange), in the journal's same batch as the page that has it; [Engine.Batches] hands it out
// until [Engine.Answered] says that the host's owner has it, and a checkpoint journals anew what waits there. The owner
// takes it in with [Engine.TakeLinks] (incoming.go), which returns when it is in the journal, and that is shipped. So a
// link is always in at least one node's keeping, and where it is in two, seen knows it the second time. While the
// outbox is full, workers take no new URL.
//
// Where links are claimed (claims.go), nothing is taken in because a page has it. All links go into the outbox, and so
// to other nodes that remember which URLs are known; these dispatch what is new to whoever is to fetch it
// ([Engine.TakeDispatched]). A page is said to be done ([Parts].Finished) when the links that it has brought have left
// the outbox, so that a node which is lost with its disk takes none with it. A host is not handed over but given up
// ([Engine.ReleaseHosts]), and what waited there is dispatched to another node.
//
// Before each request the router is asked whether the lease holds (router.go). A run that stays (keepopen.go) waits
// when it has nothing to do.
//
// A host that gets another owner is handed over (package transfer): what waits there is held by one node at any time,
// whoever dies in between.
package crawl
