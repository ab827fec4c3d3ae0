package wire

import (
	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

func (o *opening) openState() (err error) {
	if o.Folder != nil {
		if err := o.openJournal(); err != nil {
			return err
		}
	}
	if err := o.openViews(); err != nil {
		return err
	}
	if o.State, err = recovery.Recover(o.Journal, o.Views); err != nil {
		return err
	}
	if o.Journal.End() > 0 {
		if err := o.State.CheckVersion(); err != nil {
			return err
		}
	}
	if err := o.openRanks(); err != nil {
		return err
	}
	o.Resumed, o.Known, o.Waiting = !o.State.IsNew(), o.State.Known(), o.State.Pending()
	return nil
}

func (o *opening) openJournal() error {
	dir := o.Folder.Path("state", "journal")
	j, err := file.Open(o.disk, dir, file.Config{})
	if err != nil {
		return err
	}
	o.Journal = j
	o.Closers = append(o.Closers, func() error { return o.Journal.Close() })
	o.JournalFiles = func(end journal.Position) ([]folder.Part, error) {
		var begun []folder.Part
		parts, err := file.Parts(o.disk, dir, end)
		for _, p := range parts {
			begun = append(begun, folder.Part(p))
		}
		return begun, err
	}
	if o.peers == nil || o.peers.Ship == nil {
		return nil
	}
	shipped, err := o.peers.Ship(j)
	if err == nil {
		o.Journal = shipped
	}
	return err
}

// openViews opens the data structures derived from the journal: on disk if the crawl has a folder.
func (o *opening) openViews() error {
	j := o.Job
	if j.ByLinks() {
		key, err := o.openRankKey()
		if err != nil {
			return err
		}
		o.late = &lateRanker{key: key}
		j.Frontier.Ranker = o.late
	}
	j.Frontier.Overrides = j.HostConfig
	j.Frontier.RankHosts = j.ByLinks() || len(j.Crawl.Prefer) > 0
	if o.Folder == nil {
		o.Views = recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(), Frontier: frontier.New(j.Frontier)}
		return nil
	}
	memory := j.KnownMemory()
	cfg := seen.Config{Memory: memory / 2, Depths: j.Crawl.BoundsDepth(), Now: j.Crawl.Now}
	db, err := seen.Open(o.disk, o.Folder.Path("state", "seen"), cfg)
	if err != nil {
		return err
	}
	o.Closers = append(o.Closers, db.Close)
	cfg.Memory = memory / 8
	digests, err := seen.OpenDigests(o.disk, o.Folder.Path("state", "digests"), cfg)
	if err != nil {
		return err
	}
	o.Closers = append(o.Closers, digests.Close)
	j.Frontier.Disk, j.Frontier.Dir = o.disk, o.Folder.Path("state", "frontier")
	if j.Frontier.Memory == 0 {
		j.Frontier.Memory = memory / 4
	}
	f, note, err := frontier.Open(j.Frontier)
	if err != nil {
		return err
	}
	o.Closers = append(o.Closers, f.Close)
	abandoned := statefile.OpenAbandoned(o.disk, j.Dir)
	o.Closers = append(o.Closers, abandoned.Close)
	o.Views = recovery.Views{Seen: db, Digests: digests, Frontier: f, Abandoned: abandoned, Note: note}
	return nil
}

const maxRobotsBytes = 64 << 20 // memory for rules

// openRules opens the cache of robots.txt files, including those of earlier runs.
func (o *opening) openRules() (*robots.Cache, error) {
	cfg := robots.Config{Agent: job.Agent, Now: o.Job.Crawl.Now, MaxBytes: min(int64(o.Job.Shares())/8, maxRobotsBytes)}
	if o.Folder == nil {
		rules := robots.NewCache(cfg)
		o.Closers = append(o.Closers, rules.Close)
		return rules, nil
	}
	cfg.Disk, cfg.Dir = o.disk, o.Folder.Path("state", "robots")
	rules, err := robots.Open(cfg)
	if err == nil {
		o.Closers = append(o.Closers, rules.Close)
	}
	return rules, err
}
