package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"kumo/internal/advice"
	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/folder"
	"kumo/internal/frontier"
	"kumo/internal/journal"
	"kumo/internal/journal/file"
	"kumo/internal/parse"
	"kumo/internal/policy"
	"kumo/internal/recovery"
	"kumo/internal/robots"
	"kumo/internal/seen"
	"kumo/internal/settings"
	"kumo/internal/statefile"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/store/crawllog"
	"kumo/internal/store/jsonl"
	"kumo/internal/store/warc"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// A Crawl is a job with its parts, ready to run once.
type Crawl struct {
	Job      *Job
	Stats    *stats.Counter
	Frontier *frontier.Frontier
	Resumed  bool // it goes on from an earlier run
	Known    int  // URLs known at the start
	Waiting  int  // URLs waiting at the start

	engine  *crawl.Engine
	state   *recovery.State
	seeds   []weburl.URL
	folder  *folder.Folder
	journal journal.Journal
	views   recovery.Views
	asides  *statefile.Deferred
	answers *statefile.RobotsAnswers
	roots   *statefile.ScopeSeeds
	closers []io.Closer // of the views
	fetcher *fetch.Client
	scratch *vfs.Scratch
	block   *policy.BlockList
	stores  []store.Store // until the engine has closed them
	disk    vfs.FS
	why     atomic.Pointer[string] // how the run ended that somebody else has ended; nil: nobody has
	peers   *Peers                 // in a crawl of several nodes; nil for one alone
	runs    bool                   // and is not only looked into
	files   int                    // that may be open; 0: what the system says
}

// Open makes a crawl of a job: it locks the folder, reads what an earlier run left there, and puts the parts together.
// It waits, until ctx ends, for who just looks into the folder. The caller closes the crawl.
func Open(ctx context.Context, j *Job) (*Crawl, error) { return open(ctx, j, vfs.OS) }

func open(ctx context.Context, j *Job, disk vfs.FS) (_ *Crawl, err error) {
	c := &Crawl{Job: j, journal: journal.Discard, disk: disk, runs: true}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := c.check(); err != nil {
		return nil, err
	}
	if j.Dir == "" {
		return c, c.build()
	}
	if !j.HasSeeds() && !folder.At(j.Dir, disk).IsCrawl() {
		return nil, NoCrawl(j.Dir)
	}
	if folder.At(j.Dir, disk).IsNodes() {
		return nil, advice.Usage("%s belongs to a node of a cluster: kumo node --crawl %s goes on there", j.Dir, j.Name)
	}
	if c.folder, err = folder.Open(ctx, c.disk, j.Dir, folder.Options{Fresh: j.Fresh, Warn: j.Warn}); err != nil {
		return nil, err
	}
	if err := c.build(); err != nil {
		return nil, err
	}
	if err := c.checkLists(); err != nil {
		return nil, err
	}
	return c, c.folder.WriteSettings(j.Settings)
}

// openShared makes a crawl to look into, and not to run, in a folder that is shared: its disk keeps all changes to
// itself. The folder is let go with the crawl, and with an error.
func openShared(f *folder.Folder, job func() (*Job, error)) (_ *Crawl, err error) {
	c := &Crawl{journal: journal.Discard, disk: f.Disk, folder: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.Job, err = job(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := f.Prepare(false); err != nil {
		return nil, err
	}
	c.Job.Formats = slices.DeleteFunc(slices.Clone(c.Job.Formats), isWARC) // a file that a kill has left open stays so
	return c, c.build()
}

// build reads the state and puts the parts together.
func (c *Crawl) build() error {
	if err := c.openState(); err != nil {
		return c.mendable(err)
	}
	if !c.Job.HasSeeds() && c.state.Fresh() {
		return ErrNoSeeds
	}
	if c.folder != nil && c.Resumed && !settings.IsFile(c.folder.Path(settings.Name)) {
		return c.mendable(fmt.Errorf("%s, which has the settings of the crawl, is not there, or not as kumo writes it",
			c.folder.Path(settings.Name)))
	}
	return c.mendable(c.assemble())
}

// checkLists refuses to go on without seeds of which an earlier run has taken in a part: it would be a crawl of fewer
// hosts than its settings say. Who gives another file means to, and is told.
func (c *Crawl) checkLists() error {
	lists := c.state.Lists()
	if len(lists) == 0 || lists[len(lists)-1].Done {
		return nil
	}
	last := lists[len(lists)-1]
	switch f := c.Job.File; {
	case f == nil:
		return advice.Usage("the crawl in %s has taken in %d of the %d seeds of %s so far: give that again with "+
			"--input-file, or an empty file to go on without the rest",
			c.Job.Dir, last.Taken, last.Seeds, last.Name)
	case f.Digest != last.Digest:
		c.Job.Warn(fmt.Errorf("this is not %s as it was: %d of the %d seeds of that one were taken in, and the rest of it "+
			"is left", last.Name, last.Taken, last.Seeds))
	}
	return nil
}

// Check says what is wrong with a job, and touches nothing.
func Check(j *Job) error {
	c := &Crawl{Job: j, journal: journal.Discard, disk: vfs.OS, runs: true}
	return errors.Join(c.check(), c.Close())
}

// check makes the parts that a wrong job cannot have.
func (c *Crawl) check() (err error) {
	if c.seeds, err = c.Job.Fix(); err != nil {
		return err
	}
	if !c.Job.HasSeeds() && (c.Job.Fresh || c.Job.Dir == "") {
		return ErrNoSeeds
	}
	if c.Job.Dir == "" && len(c.Job.Crawl.Recrawl.Intervals) > 0 {
		return advice.Usage("what was visited is known from a crawl's folder: recrawls need one")
	}
	if c.runs {
		if err := c.budget(); err != nil {
			return err
		}
	}
	c.openScratch()
	c.Job.Crawl.Shares = c.Job.Shares()
	c.Job.Fetch.Memory = c.Job.Crawl.Shares.Answers()
	if c.fetcher, err = fetch.New(c.Job.fetching()); err != nil {
		return advice.Usage("%w", err)
	}
	if c.block, err = c.blockList(); err != nil {
		return advice.Usage("%w", err)
	}
	return nil
}

// ErrNoSeeds is a new crawl without a URL to begin with.
var ErrNoSeeds = errors.New("no URL to begin with: name one, or give a file of them with --input-file")

// NoCrawl is ErrNoSeeds for a folder in which there is no crawl to go on with.
func NoCrawl(dir string) error { return fmt.Errorf("there is no crawl in %s, and %w", dir, ErrNoSeeds) }

// openState recovers the state from the folder, if the crawl has one.
func (c *Crawl) openState() (err error) {
	if c.folder != nil {
		j, err := file.Open(c.disk, c.folder.Path("state", "journal"), file.Config{})
		if err != nil {
			return err
		}
		c.journal = j
		if c.peers != nil {
			shipped, err := c.peers.Ship(j)
			if err != nil {
				return err
			}
			c.journal = shipped
		}
	}
	if err := c.openViews(); err != nil {
		return err
	}
	if c.state, err = recovery.Recover(c.journal, c.views); err != nil {
		return err
	}
	if c.journal.End() > 0 {
		if err := c.state.CheckAge(); err != nil {
			return err
		}
	}
	c.Stats, c.Resumed = c.state.Stats, !c.state.Fresh()
	c.Known, c.Waiting = c.state.Known(), c.state.Waiting()
	return nil
}

// openViews opens what the journal's entries have come to: on the disk, if the crawl has a folder.
func (c *Crawl) openViews() (err error) {
	j := c.Job
	if c.folder == nil {
		c.views = recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(), Frontier: frontier.New(j.Frontier)}
		return nil
	}
	memory := j.MemoryBudget()
	cfg := seen.Config{Memory: memory / 2, Depths: j.Crawl.Depth >= 0, Now: j.Crawl.Now}
	db, err := seen.Open(c.disk, c.folder.Path("state", "seen"), cfg)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, db)
	cfg.Memory = memory / 8
	digests, err := seen.OpenDigests(c.disk, c.folder.Path("state", "digests"), cfg)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, digests)
	j.Frontier.Disk, j.Frontier.Dir = c.disk, c.folder.Path("state", "frontier")
	if j.Frontier.Memory == 0 {
		j.Frontier.Memory = memory / 4
	}
	f, note, err := frontier.Open(j.Frontier)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, f)
	shelf := statefile.OpenAbandoned(c.disk, j.Dir)
	c.closers = append(c.closers, shelf)
	c.views = recovery.Views{Seen: db, Digests: digests, Frontier: f, Abandoned: shelf, Note: note}
	return nil
}

// assemble is where implementations are chosen.
func (c *Crawl) assemble() error {
	j := c.Job
	stores, err := c.openStores()
	c.stores = stores
	if err != nil {
		return err
	}
	c.Frontier = c.views.Frontier
	rules, err := c.openRules()
	if err != nil {
		return err
	}
	parts := crawl.Parts{
		Deferred:  c.asides,
		Answers:   c.answers,
		Roots:     c.roots,
		Robots:    rules,
		Scope:     weburl.NewScope(j.Scope),
		Block:     c.block,
		Fetcher:   c.fetcher,
		NewParser: func(room int64) crawl.Parser { return parse.New(j.parser(room)) },
		Text:      j.Text,
		Archive:   slices.ContainsFunc(j.Formats, isWARC),
		Free:      c.free(),
		Stores:    stores,
		Journal:   c.journal,
		Listener:  j.Listener,
	}
	if j.File != nil && !j.File.Few() {
		parts.Seeds = j.File
	}
	parts.NoSecrets = !c.fetcher.HasSecrets()
	if c.peers != nil {
		c.peers.Join(&parts)
	}
	c.engine = crawl.New(j.Crawl, parts, c.state)
	return nil
}

const mostRobots = 64 << 20 // bytes of rules

// openRules opens the cache of what robots.txt files say, with what an earlier run was told.
func (c *Crawl) openRules() (*robots.Cache, error) {
	cfg := robots.Config{Agent: Agent, Now: c.Job.Crawl.Now, MaxBytes: min(int64(c.Job.Shares())/8, mostRobots)}
	if c.folder == nil {
		return robots.NewCache(cfg), nil
	}
	cfg.Disk, cfg.Dir = c.disk, c.folder.Path("state", "robots")
	rules, err := robots.Open(cfg)
	if err == nil {
		c.closers = append(c.closers, rules)
	}
	return rules, err
}

// free asks for the room on the crawl's disk; nil where it keeps nothing.
func (c *Crawl) free() func() (uint64, error) {
	if c.folder == nil {
		return nil
	}
	return func() (uint64, error) { return c.disk.Free(c.Job.Dir) }
}

func isWARC(format string) bool { return format == "warc" }

func (c *Crawl) openStores() ([]store.Store, error) {
	j := c.Job
	if j.Dir == "" {
		return nil, nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	var stores []store.Store
	add := func(s store.Store, err error) error {
		if err == nil {
			stores = append(stores, s)
		}
		return err
	}
	// The WARC comes first: it fills in where the record lies, which pages.jsonl names.
	if slices.ContainsFunc(j.Formats, isWARC) {
		cfg := warc.Config{Dir: j.Dir, Name: j.Name, Hostname: nameSafe(hostname), MaxSize: j.WARCSize,
			Compression: j.Compress,
			Scratch:     c.scratch, Software: Agent + "/" + Version, Info: warcInfo(j), Now: j.Crawl.Now}
		if c.peers == nil { // a node that has lost its place begins with another state
			if err := warc.Check(c.disk, j.Dir, c.state.Marks, j.Moved); err != nil {
				return nil, err
			}
		}
		if err := add(warc.Open(c.disk, cfg, c.state.Marks)); err != nil {
			return nil, err
		}
	}
	asides, err := statefile.OpenDeferred(c.disk, j.Dir, c.state.Marks)
	if err := add(asides, err); err != nil {
		return nil, err
	}
	c.asides = asides
	c.answers, err = statefile.OpenRobotsAnswers(c.disk, j.Dir, c.state.Marks)
	if err := add(c.answers, err); err != nil {
		return nil, err
	}
	c.roots, err = statefile.OpenScopeSeeds(c.disk, j.Dir, c.state.Marks)
	if err := add(c.roots, err); err != nil {
		return nil, err
	}
	lines := jsonl.Config{Dir: j.Dir, NoPages: !slices.Contains(j.Formats, "jsonl")}
	if err := add(jsonl.Open(c.disk, lines, c.state.Marks)); err != nil {
		return nil, err
	}
	if j.Text != nil {
		if err := add(jsonl.OpenTexts(c.disk, lines, c.state.Marks)); err != nil {
			return nil, err
		}
	}
	err = add(crawllog.Open(c.disk, crawllog.Config{Dir: j.Dir}, c.state.Marks))
	return stores, err
}

func (c *Crawl) blockList() (*policy.BlockList, error) {
	if c.Job.BlockFile == "" {
		return nil, nil
	}
	now := c.Job.Crawl.Now
	if now == nil {
		now = time.Now
	}
	return policy.OpenBlockList(c.Job.BlockFile, now, c.Job.Warn)
}

// Run crawls until nothing waits, a limit is reached (an error that is policy.ErrLimit) or ctx ends (its error), and
// reports what the crawl has come to. There is a report also when there is an error.
func (c *Crawl) Run(ctx context.Context) (*stats.Report, error) {
	before := c.Stats.Totals()
	report := &stats.Report{Crawl: c.Job.Name, Started: c.Job.now(), Ended: "done"}
	away := c.answerLooks()
	err := c.engine.Run(ctx, c.seeds, c.Job.workers())
	away()
	report.Ended = ended(err)
	if why := c.why.Load(); why != nil && IsStop(err) {
		report.Ended = *why
	}
	if err == nil || IsStop(err) || errors.Is(err, policy.ErrLimit) || errors.Is(err, crawl.ErrStuck) ||
		errors.Is(err, crawl.ErrCutOff) {
		c.stores = nil // the engine has closed them
	}
	report.Stopped = c.Job.now()
	report.Fill(c.Stats.Snapshot(), before.Pages, before.Bytes)
	reach, line := c.engine.Reach(), c.engine.Outage()
	report.HostsAnswered, report.HostsGivenUp, report.HostsFell = reach.Answered, reach.GaveUp, reach.Fell
	report.CutOffs, report.CutOffSeconds, report.Scarce = line.Times, line.Total.Seconds(), line.Scarce
	report.Journal, report.Undecided = uint64(c.journal.End()), c.engine.Undecided()
	counts := c.Frontier.Counts()
	report.Known, report.Waiting, report.Hosts = c.engine.Known(), counts.URLs+int(report.Forsaken), counts.Hosts
	report.Refused = c.engine.Refused()
	if c.folder != nil && !vfs.IsFull(err) {
		err = errors.Join(err, c.folder.WriteReport(report))
	}
	if isDamage(err) {
		err = c.mendable(err)
	}
	return report, err
}

// ended says in a few words how a run ended.
func ended(err error) string {
	switch {
	case err == nil:
		return "done"
	case IsStop(err):
		return "interrupted"
	case vfs.IsFull(err):
		return "the disk is full"
	case errors.Is(err, policy.ErrLimit), errors.Is(err, crawl.ErrStuck), errors.Is(err, crawl.ErrCutOff):
		return err.Error()
	}
	return "failed"
}

// IsStop reports whether a run ended because its context did.
func IsStop(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Seeds says how many seeds of the job's file were taken in, and how many it has; 0 and 0 where there is none.
func (c *Crawl) Seeds() (taken, all int64) { return c.engine.Seeds() }

// URLsKnown is the number of URLs met within reach so far.
func (c *Crawl) URLsKnown() int { return c.engine.Known() }

// Outage is whether the crawl is cut off from the web now, and how often it was.
func (c *Crawl) Outage() crawl.Outage { return c.engine.Outage() }

// Close lets the folder go.
func (c *Crawl) Close() error {
	if c.fetcher != nil {
		c.fetcher.Close()
	}
	err := c.journal.Close()
	if c.scratch != nil {
		err = errors.Join(err, c.scratch.Close())
	}
	for _, closer := range c.closers {
		err = errors.Join(err, closer.Close())
	}
	for _, s := range c.stores {
		_ = s.Close() // its files are as the last commit left them; the next run goes on from there
	}
	if c.folder != nil {
		err = errors.Join(err, c.folder.Close())
	}
	return err
}

func nameSafe(s string) string { return unsafeInNames.ReplaceAllString(s, "-") }

func warcInfo(j *Job) [][2]string {
	info := [][2]string{
		{"http-header-user-agent", j.UserAgent()},
		{"robots", map[bool]string{false: "obey", true: "ignore"}[j.Crawl.IgnoreRobots]},
	}
	if j.Contact != "" {
		info = append(info, [2]string{"operator", j.Contact})
	}
	for _, s := range j.Settings {
		for _, v := range s.Values {
			info = append(info, [2]string{"kumo-" + s.Key, v})
		}
	}
	return info
}

// DefaultDir is where a crawl lies unless the user says otherwise.
func DefaultDir(name string) string { return filepath.Join("crawls", name) }
