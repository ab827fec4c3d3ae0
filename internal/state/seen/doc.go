// Package seen knows every URL that a crawl has met, so that each is fetched once.
//
// A [DB] is the URL database with late merge of Ye, Yu and Ma ("Igloo", 2002): URLs go into memory and are answered at
// once; when memory has had its share, it is merged with what lies on the disk in one sequential pass, and only there
// duplicates are found. What differs: a static filter over the disk part lets through at once what is certainly new, so
// that only a URL that may be known waits for the merge; memory is a hash table instead of a trie (why,
// [kumo/internal/state/seen/mem] says); the disk part is several sorted, prefix-compressed runs in tiers instead of one trie,
// so that a merge costs what it brings, and not what is known ([kumo/internal/state/seen/run], [kumo/internal/state/seen/tier]).
//
// What waits is not decided by each merge: a pass over all of the disk is worth while for many URLs only, so they wait
// there, sorted, until there is one for each [Config].Share of what is known.
//
// A filter errs on one side only, so a URL may be decided late, but never wrongly and never lost. Each merge is a
// checkpoint: the database on the disk is as it was at a position of the journal, and offering it what the journal has
// from there on makes it what it was.
//
// [Digests] keeps what pages were stored, by the digest of their content, in the same way. A [Set] is a set of URLs in
// memory only.
//
// docs/decisions/seen.md compares it with an embedded store.
package seen
