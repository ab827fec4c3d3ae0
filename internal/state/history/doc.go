// Package history is what a backup node of a crawl without a center remembers of URLs: which are known, and of those
// that were dispatched to be fetched and are not yet done, all it takes to dispatch them again.
//
// Huang, Zeng and Chen ("Method for Fully Distributed Crawler Cluster Based on Kademia") let the memory of a URL live
// apart from the node that fetches it: on the nodes closest to another hash of it, in lists by the first bit in which
// that hash and the node's id differ. What differs here:
//
//   - A URL's place follows from its host: all URLs of a host have one key, that of [Config].Key, so that links to a
//     host are asked for together, and mostly one block of the disk is looked at.
//   - To ask and to record is one step, [DB.Enter]: of two who find the same URL at once, one is told that it is new.
//   - A URL is dispatched or done. What is dispatched keeps its Data; what is done keeps a hash of 14 bytes, and is
//     done for good, whatever comes later.
//   - There are no lists: what goes to other nodes is read, and forgotten, host by host.
//
// On the disk are sorted runs with filters, and they are written and merged as those of [kumo/internal/state/seen]; but what
// is entered is decided at once, for which a block is read where a filter does not rule out that the URL is there. What
// is not yet in a run is in memory, and in a journal: [DB.Sync] returns when all is there that was done before it was
// called. What is to be answered to other nodes is answered after that.
package history
