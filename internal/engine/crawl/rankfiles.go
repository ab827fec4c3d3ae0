package crawl

import (
	"errors"

	"kumo/internal/base/page"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/store"
)

// RankDir is the directory, below a crawl's folder, of the link files for ranking.
const RankDir = "state/rank"

const (
	rankKeys   = RankDir + "/" + linklog.KeysFile
	rankLinks  = RankDir + "/" + linklog.LinksFile
	rankOthers = RankDir + "/" + linklog.OthersFile
)

// RankMark returns the mark of the link files among marks.
func RankMark(marks []store.Mark) linklog.Mark {
	keys, _ := store.FindMark(marks, rankKeys)
	links, _ := store.FindMark(marks, rankLinks)
	others, _ := store.FindMark(marks, rankOthers)
	return linklog.MarkOf(keys, links, others)
}

// rankFiles is the ranker's files as a store, so that they agree with the journal after a crash. Only checkpoints wait
// until they are durable, commits do not: if the machine crashes, links may be lost for the ranking, but no URL is.
type rankFiles struct{ *ranker.Ranker }

var _ store.Store = rankFiles{}

// stores returns the engine's stores, with the ranking's own added.
func (r *ranking) stores(all []store.Store) []store.Store {
	if r.Links == nil || !r.Persistent {
		return all
	}
	return append(all[:len(all):len(all)], rankFiles{r.Links})
}

// sync makes the ranking's links durable.
func (r *ranking) sync() error {
	if r.Links == nil || !r.Persistent {
		return nil
	}
	_, err := r.Links.Sync()
	return err
}

// Put does nothing: the ranker gets a page with its links.
func (rankFiles) Put(*page.Record) error { return nil }

// PutSkip does nothing: links to filtered URLs do not count.
func (rankFiles) PutSkip(*page.Skip) error { return nil }

// Mark returns the lengths of the link files.
func (f rankFiles) Mark() ([]store.Mark, error) {
	keys, links, others := f.Ranker.Mark().Lengths()
	return []store.Mark{{Name: rankKeys, Length: keys}, {Name: rankLinks, Length: links},
		{Name: rankOthers, Length: others}}, nil
}

// Sync flushes the link files to the operating system.
func (f rankFiles) Sync() error { return f.Flush() }

// Finalize does nothing.
func (rankFiles) Finalize() error { return nil }

// Close makes the link files durable and closes them.
func (f rankFiles) Close() error {
	_, err := f.Ranker.Sync()
	return errors.Join(err, f.Ranker.Close())
}
