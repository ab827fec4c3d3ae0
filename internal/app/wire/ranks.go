package wire

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"kumo/internal/app/job"
	"kumo/internal/base/advice"
	"kumo/internal/base/siphash"
	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/breadth"
	"kumo/internal/state/rank/depth"
	"kumo/internal/state/rank/ids"
	"kumo/internal/state/rank/indegree"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/opic"
	"kumo/internal/state/rank/pagerank"
	"kumo/internal/state/rank/random"
	"kumo/internal/state/rank/ranker"
)

// orders creates each order, without links.
var orders = map[string]func() rank.Order{
	job.PageRank: func() rank.Order { return pagerank.New(0) },
	job.OPIC:     func() rank.Order { return opic.New() },
	job.InDegree: func() rank.Order { return indegree.New() },
	job.ByDepth:  func() rank.Order { return depth.New() },
	job.Breadth:  func() rank.Order { return breadth.New() },
	job.Random:   func() rank.Order { return random.New(0) },
	"":           func() rank.Order { return depth.New() },
}

func (o *opening) checkOrder() error {
	j := o.Job
	if orders[j.Order] == nil {
		return advice.Usage("order %q: use one of %v", j.Order, job.Orders())
	}
	if o.peers != nil && j.Crawl.Claims {
		return j.CheckMesh()
	}
	return nil
}

// rankKey is the file with the hash key for URLs. The key is secret to the crawl, so that no one can construct URLs
// that collide.
const rankKey = "key"

// A lateRanker is the frontier's Ranker. The frontier is opened before the journal, whose position the ranker needs.
// Until then it returns no places.
type lateRanker struct {
	key siphash.Key
	*ranker.Ranker
}

var errNoRanks = errors.New("URLs are only ranked after the journal is read")

// KeyOf returns the key of a URL.
func (l *lateRanker) KeyOf(url string) ids.Key { return ids.KeyOf(&l.key, url) }

// Generation is 0 until URLs are ranked.
func (l *lateRanker) Generation() uint64 {
	if l.Ranker == nil {
		return 0
	}
	return l.Ranker.Generation()
}

// Places appends the places of URLs in the order.
func (l *lateRanker) Places(all []ids.URL, to []rank.Place) ([]rank.Place, error) {
	if l.Ranker == nil {
		return to, errNoRanks
	}
	return l.Ranker.Places(all, to)
}

func (o *opening) openRankKey() (key siphash.Key, err error) {
	if o.Folder == nil {
		_, err = rand.Read(key[:])
		return key, err
	}
	name := filepath.Join(o.rankDir(), rankKey)
	f, err := o.disk.Open(name)
	if err == nil {
		_, err = io.ReadFull(f, key[:])
		err = errors.Join(err, f.Close())
	}
	isShort := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	if err == nil || !isShort && !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if _, err := rand.Read(key[:]); err != nil {
		return key, err
	}
	o.rankKeyIsNew = true
	if err := o.disk.MkdirAll(o.rankDir()); err != nil {
		return key, err
	}
	return key, writeNew(o.disk, name, key[:])
}

// writeNew writes a file that may be incomplete after a crash. It does not rename, which overlay disks cannot do.
func writeNew(disk vfs.FS, name string, data []byte) error {
	if err := vfs.TruncateTo(disk, name, 0); err != nil {
		return err
	}
	f, err := disk.Append(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (o *opening) rankDir() string { return o.Folder.Path(filepath.FromSlash(crawl.RankDir)) }

// openRanks opens the job's order with the links recorded up to the journal's end. If these are lost, it uses those of
// the last checkpoint, or none. No URL is lost by this.
func (o *opening) openRanks() error {
	j := o.Job
	if !j.ByLinks() {
		o.ranks.Name, o.ranks.Order = cmp.Or(j.Order, job.ByDepth), orders[j.Order]()
		if j.Order == job.Random {
			o.ranks.ID = func(url string) rank.ID { return rank.ID(ids.KeyOf(new(siphash.Key), url)) }
		}
		return nil
	}
	marks := []linklog.Mark{crawl.RankMark(o.State.Marks), crawl.RankMark(o.State.Checkpoint), {}}
	if o.rankKeyIsNew {
		marks = marks[2:]
	}
	var lost error
	for _, mark := range marks {
		r, err := o.openRanker(mark)
		if err == nil {
			o.useRanker(r)
			o.warnRanks(mark, lost)
			return nil
		}
		if !errors.Is(err, linklog.ErrDamaged) && !errors.Is(err, linklog.ErrVersion) {
			return err
		}
		lost = errors.Join(lost, err)
	}
	return lost
}

func (o *opening) openRanker(mark linklog.Mark) (*ranker.Ranker, error) {
	urls, links := o.Job.RankMemory(o.peers != nil)
	cfg := ranker.Config{Order: orders[o.Job.Order](), Key: o.late.key, MaxURLs: urls, Others: o.peers != nil}
	if o.Folder != nil {
		cfg.Log = linklog.Config{Dir: o.rankDir(), Disk: o.disk, Memory: links}
		if mark == (linklog.Mark{}) {
			if err := linklog.Remove(o.disk, o.rankDir()); err != nil {
				return nil, err
			}
		}
	}
	return ranker.Open(context.Background(), cfg, mark)
}

func (o *opening) useRanker(r *ranker.Ranker) {
	o.late.Ranker = r
	o.ranks = crawl.Ranks{Name: o.Job.Order, Links: r, Persistent: o.Folder != nil}
	o.Closers = append(o.Closers, r.Close)
}

func (o *opening) warnRanks(mark linklog.Mark, lost error) {
	pages := o.State.Stats.Pages()
	known := mark != (linklog.Mark{})
	switch {
	case !o.willRun:
	case errors.Is(lost, linklog.ErrVersion) && !known:
		o.Job.Warn(fmt.Errorf("the ranking starts again, by links found from now on: %w", linklog.ErrVersion))
	case lost != nil && known:
		o.Job.Warn(fmt.Errorf("some of the links for ranking URLs are lost: %w", lost))
	case lost != nil:
		o.Job.Warn(fmt.Errorf("URLs are ranked by links found from now on: %w", lost))
	case !known && pages > 0:
		o.Job.Warn(fmt.Errorf("--order %s needs links, but those of the pages fetched so far were not recorded, so "+
			"URLs are ranked by links found from now on", o.Job.Order))
	}
}
