package crawl

import (
	"errors"

	"kumo/internal/base/page"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/store"
)

// RankDir is where a crawl's folder has the links by which URLs are ranked.
const RankDir = "state/rank"

const (
	rankKeys   = RankDir + "/" + linklog.KeysFile
	rankLinks  = RankDir + "/" + linklog.LinksFile
	rankOthers = RankDir + "/" + linklog.OthersFile
)

// RankMark is what marks of a crawl's files say of its links.
func RankMark(marks []store.Mark) linklog.Mark {
	keys, _ := store.FindMark(marks, rankKeys)
	links, _ := store.FindMark(marks, rankLinks)
	others, _ := store.FindMark(marks, rankOthers)
	return linklog.MarkOf(keys, links, others)
}

// rankFiles are the files of a ranker as a store, so that they agree with the journal after a crash. A commit does not
// wait until they are durable, as a checkpoint does: where the machine dies, links may be lost, and no URL is.
type rankFiles struct{ *ranker.Ranker }

var _ store.Store = rankFiles{}

// stores are those of the engine with the ranking's own.
func (r *ranking) stores(all []store.Store) []store.Store {
	if r.Links == nil || !r.Persistent {
		return all
	}
	return append(all[:len(all):len(all)], rankFiles{r.Links})
}

// sync makes durable what was told.
func (r *ranking) sync() error {
	if r.Links == nil || !r.Persistent {
		return nil
	}
	_, err := r.Links.Sync()
	return err
}

// Put does nothing: a page is told to the ranker with its links.
func (rankFiles) Put(*page.Record) error { return nil }

// PutSkip does nothing: a link to what is left out does not count.
func (rankFiles) PutSkip(*page.Skip) error { return nil }

// Mark is what was told so far.
func (f rankFiles) Mark() ([]store.Mark, error) {
	keys, links, others := f.Ranker.Mark().Lengths()
	return []store.Mark{{Name: rankKeys, Length: keys}, {Name: rankLinks, Length: links},
		{Name: rankOthers, Length: others}}, nil
}

// Sync hands to the operating system what was told.
func (f rankFiles) Sync() error { return f.Flush() }

// Finalize does nothing.
func (rankFiles) Finalize() error { return nil }

// Close makes all durable.
func (f rankFiles) Close() error {
	_, err := f.Ranker.Sync()
	return errors.Join(err, f.Ranker.Close())
}
