// Package seen records every URL that a crawl has met, so that each is fetched once.
//
// # URL database
//
// A [DB] is the URL database with late merge of Ye, Yu and Ma ("Igloo", 2002). New URLs go into memory. When the memory
// budget is used up, they are merged with the disk in one sequential pass, and only then are duplicates found. The
// package differs:
//
//   - A static filter over the disk part admits URLs that are certainly new at once. So only URLs that may be known
//     wait for the merge.
//   - The memory part is a hash table instead of a trie ([kumo/internal/state/seen/mem] gives the reasons).
//   - The disk part is several sorted, prefix-compressed runs in tiers instead of one trie. So the cost of a merge
//     depends on the new URLs and not on the known ones ([kumo/internal/state/seen/run],
//     [kumo/internal/state/seen/tier]).
//
// Not every merge decides the waiting URLs: a pass over the whole disk pays off only for many URLs. So they are stored
// on disk, sorted, until there is one for each [Config].Share known URLs.
//
// A filter has only false positives, so the decision on a URL may be late, but it is never wrong, and no URL is lost.
//
// Each merge is a checkpoint. The database on disk has the state at one position of the journal. Offering it the rest
// of the journal restores the current state.
//
// # Other sets
//
// [Digests] records the content digests of stored pages in the same way. A [Set] is a set of URLs in memory only.
//
// docs/decisions/seen.md compares the package with an embedded store.
package seen
