// Package crawl runs the crawl loop of one node.
//
// A URL passes these steps, in the order of the code. The functions are those that it passes from seed to record:
//
//	add        [Engine.Run], [Seeding].admitSeeds and queueSeeds admit seeds; addLinks, called from read, admits links;
//	           admission.classify applies scope, filters, block list and depth (policy.Rules.Judge)
//	new?       abandoner.commitBatch and batchWriter.apply: admission.offer drops known URLs and routes new ones;
//	           rejected ones are counted or recorded as skipped. The next merge decides uncertain ones (checkpoint.go)
//	queue      frontier.Push queues the URL by host, and Next hands it out when the host is due
//	visit      Engine.crawl and runner.work; worker.visit, allowed (rules, robots.txt, limits) and awaitTurn (at the
//	           server's address)
//	fetch      worker.fetch makes one exchange (Fetcher.Get), outcomes.judge and visit.Judge decide what follows: after
//	           a failure the URL is requeued or abandoned
//	parse      pageReader.read and parse extract page and links from the bytes, in the same goroutine
//	commit     worker.finish, commitBatch and apply: ledger.Put writes the record to the stores (Store.Put), and the
//	           done mark and the new links to the journal as one batch; then new links go to the frontier
//	done       worker.done and frontier.Done set the time of the host's next visit
//
// The caller can change or veto links, requests and records with [Hooks] (hooks.go). A link hook runs before the link
// is judged, and a request hook before the request is sent. A record hook runs before anything of the record is stored.
//
// # Reading order
//
// Calls go down this list of files: from the parts that drive a crawl to those that hold its state.
//
//	engine rebuild seeds keepopen restore                      a run and its seeds
//	drain checkpoint snapshot writedeferred                    how it ends, and the files that it leaves
//	explain inspector top probe tuning                         questions to it
//	due stuck rankkeeper                                       beside the visits
//	dispatched release links peerhosts                         other nodes
//	runner workers interrupt                                   workers
//	visit hooks robots sitemaps login hops                     a visit
//	read readpool shares recrawl override traps                its page
//	outcome vitals leave                                       its end
//	abandon apply outbox claims admission judge                a batch on its way into the journal
//	scopeseeds router origins holds line diskguard valve       limits that delay visits
//	known visitends vain limits counts ranking rankfiles names known URLs, hosts and counts
//	config listener                                            settings and events
//
// [New] makes the parts from the bottom up, and gives each the parts that it uses, which were made before it. Only a
// run's stopper is called from below. Package visit has the code that batch crawls and plans use, too.
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
// A [Router] reports which hosts this node owns. A link to another node's host is not offered to seen but put into the
// outbox (outbox.go, package exchange). The journal records it in the batch of the page that contains it.
// [Links.Batches] returns the link until [Links.Answered] reports that the host's owner has it. A checkpoint writes the
// links left in the outbox to the journal again. The owner admits the link with [Links.TakeLinks] (links.go), which
// returns when the link is in the owner's journal and the journal is replicated. So at least one node holds each link
// at any time. If two nodes hold it, seen recognizes the second copy. While the outbox is full, workers fetch no new
// URL.
//
// In a mesh crawl, links are claimed (claims.go): a node does not queue a link because one of its pages contains it.
// All links go through the outbox to the nodes that remember which URLs are known. These nodes dispatch new URLs to the
// node that will fetch them ([Dispatches.TakeDispatched]). A page is reported as finished ([Parts].Finished) once its
// links have left the outbox, so that losing a node with its disk loses no link. Hosts are not handed over but released
// ([Dispatches.ReleaseHosts]), and their pending URLs are dispatched to another node. With recrawls, these nodes also
// remember the next visits ([Parts].Revisit), and dispatch them when they are due ([Dispatches.TakeRevisits]).
//
// Before each request the engine checks with the router that the node's lease holds (router.go). A persistent run
// (keepopen.go) does not end when the queues are empty.
//
// In other clusters, a host that changes owner is handed over (package transfer). One node holds the host's pending
// URLs at any time, whichever node fails during the transfer.
package crawl
