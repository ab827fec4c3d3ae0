// Package history implements the URL history that backup nodes store in a crawl without a center.
//
// It records which URLs are known. For URLs that were dispatched and are not yet done, it also stores the data to
// dispatch them again.
//
// Huang, Zeng and Chen ("Method for Fully Distributed Crawler Cluster Based on Kademia") separate the record of a URL
// from the node that fetches it. The nodes closest to another hash of the URL store it, in lists by the first bit in
// which that hash and the node's id differ. This package differs:
//
//   - The key of a URL depends on its host only ([Config].Key). So links to a host are queried together, mostly with
//     one read of a block.
//   - [DB.Insert] queries and records in one step. If two nodes find the same URL at once, only one gets it as new.
//   - A URL is dispatched or done. A dispatched URL has its Data. A done URL has a hash of 14 bytes, and stays done.
//   - In a crawl with recrawls, a URL that was fetched has the data of its next visit instead: it is scheduled, and later
//     dispatched again. Each visit has a number, and a later one replaces the earlier ones.
//   - A list is a range of keys ([DB.RecordsWithin]). Transfers to other nodes read and delete the history host by
//     host.
//
// On disk there are sorted runs with filters, written and merged like those of [kumo/internal/state/seen]. Unlike
// there, each entry is decided at once; a block is read only if a filter does not exclude the URL. Entries that are not
// yet in a run are in memory and in a journal. [DB.Sync] returns when the journal has all earlier changes on disk.
// Answers to other nodes are sent after that.
package history
