// Package wire builds a crawl from the user's settings. It is the only package that chooses the implementations of
// interfaces and connects the parts; its subpackages do so for optional parts. The command and the library both use it.
package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/repair"
	"kumo/internal/app/session"
	"kumo/internal/base/advice"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/journal"
)

type opening struct {
	session.Parts
	disk         vfs.FS
	uploadedDisk vfs.FS                // the disk extended by uploaded files; nil: no upload
	peers        *session.ClusterHooks // nil for a crawl on one machine
	willRun      bool                  // the session will run, not just answer queries
	filesOnly    bool                  // the crawl has no state, and possibly no seeds
	block        *policy.BlockList
	scratch      *vfs.Scratch
	logins       *login.Sessions // nil: no logins

	ranks        crawl.Ranks
	late         *lateRanker // nil: the order does not depend on links
	rankKeyIsNew bool
}

// Open creates a session of a job: it locks the folder, reads the state of earlier runs, and connects the parts. It
// waits for readers of the folder until ctx ends. The caller closes the session.
func Open(ctx context.Context, j *job.Job) (*session.Session, error) { return open(ctx, j, vfs.OS) }

func open(ctx context.Context, j *job.Job, disk vfs.FS) (*session.Session, error) {
	o := &opening{Parts: session.Parts{Job: j}, disk: disk, willRun: true}
	return o.make(func() error {
		if err := o.check(); err != nil {
			return err
		}
		if j.Dir == "" {
			return o.build()
		}
		f := folder.At(j.Dir, disk)
		if !j.HasSeeds() && !f.IsCrawl() {
			return j.NoSeedsError()
		}
		if f.IsNodes() {
			return advice.Usage("%s belongs to a node of a cluster: resume it with kumo node --crawl %s", j.Dir, j.Name)
		}
		var err error
		if o.Folder, err = folder.Open(ctx, o.disk, j.Dir, folder.Options{Exclusive: true, Fresh: j.Fresh,
			Discard: j.Discard, Now: j.Now(), Warn: j.Warn}); err != nil {
			return err
		}
		return runSteps(o.openUploaded, func() error { return o.widen(ctx) }, o.build, o.checkLists,
			func() error { return o.Folder.WriteSettings(j.Settings) })
	})
}

// runSteps runs steps until one fails.
func runSteps(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openUploaded opens the crawl's storage location, if it has one.
func (o *opening) openUploaded() (err error) {
	if o.Job.Upload != nil {
		o.uploadedDisk, err = o.Job.Upload.Overlay(o.disk)
	}
	return err
}

// records returns the disk with all record files, including uploaded ones.
func (o *opening) records() vfs.FS {
	if o.uploadedDisk != nil {
		return o.uploadedDisk
	}
	return o.disk
}

// OpenPart is a session.Opener.
func OpenPart(f *folder.Folder, j *job.Job, p *session.ClusterHooks) (*session.Session, error) {
	o := &opening{Parts: session.Parts{Job: j, Folder: f}, disk: f.Disk, peers: p, willRun: true}
	return o.make(func() error {
		return runSteps(o.check, o.openUploaded, o.openState, o.assemble, func() error { return f.WriteSettings(j.Settings) })
	})
}

// Inspect opens a read-only view of the crawl in dir, with the job's settings. It queries a running crawl.
func Inspect(ctx context.Context, dir string, settled func() (*job.Job, error)) (*inspect.View, error) {
	return session.Inspect(ctx, dir, func(f *folder.Folder) (*session.Session, error) { return openShared(f, settled) })
}

// InspectFiles opens a view of a crawl without a state: of its record files, and of the decisions that follow from its
// settings. disk has the files below dir, which has the settings.
func InspectFiles(dir string, disk vfs.FS, settled func() (*job.Job, error)) (*inspect.View, error) {
	f := folder.At(dir, vfs.NewOverlay(vfs.OS))
	s, err := (&opening{Parts: session.Parts{Folder: f}, disk: f.Disk, filesOnly: true}).share(settled)
	if err != nil {
		return nil, err
	}
	return session.ViewOfFiles(s, dir, disk), nil
}

// openShared creates a session that is only used for queries, on an overlay disk, which discards changes.
func openShared(f *folder.Folder, settled func() (*job.Job, error)) (*session.Session, error) {
	return (&opening{Parts: session.Parts{Folder: f}, disk: f.Disk}).share(settled)
}

func (o *opening) share(settled func() (*job.Job, error)) (*session.Session, error) {
	return o.make(func() (err error) {
		if o.Job, err = settled(); err != nil {
			return err
		}
		if err := runSteps(o.check, o.Folder.Prepare); err != nil {
			return err
		}
		// Leave files that were open during a crash as they are.
		o.Job.Formats = slices.DeleteFunc(slices.Clone(o.Job.Formats), func(f string) bool { return f == job.WARC })
		return o.build()
	})
}

// Check returns an error if the job is invalid. It changes nothing.
func Check(j *job.Job) error {
	o := &opening{Parts: session.Parts{Job: j}, disk: vfs.OS, willRun: true}
	return errors.Join(o.check(), o.Close())
}

// make runs the steps and creates the session. On an error, it closes the parts.
func (o *opening) make(steps func() error) (*session.Session, error) {
	if err := steps(); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	o.Advise = func(err error) error {
		if repair.IsDamage(err) {
			return o.withRepairHint(err)
		}
		return err
	}
	return session.New(o.Parts), nil
}

func (o *opening) build() error {
	if err := o.openState(); err != nil {
		return o.withRepairHint(err)
	}
	if !o.filesOnly && !o.Job.HasSeeds() && o.State.IsNew() {
		return o.Job.NoSeedsError()
	}
	if o.Folder != nil && o.Resumed && !settings.IsFile(o.Folder.Path(settings.Name)) {
		return o.withRepairHint(fmt.Errorf("%s, with the settings of the crawl, is missing or damaged",
			o.Folder.Path(settings.Name)))
	}
	return o.withRepairHint(o.assemble())
}

func (o *opening) withRepairHint(err error) error {
	if o.Folder == nil || o.peers != nil || errors.Is(err, job.ErrNoSeeds) {
		return err
	}
	return repair.Advise(err, o.Folder)
}

// checkLists returns an error if the rest of a partly read file of seeds is missing: the crawl would cover fewer hosts
// than its settings say. A different file is assumed to be intended, with a warning.
func (o *opening) checkLists() error {
	lists := o.State.SeedLists
	if len(lists) == 0 || lists[len(lists)-1].Done {
		return nil
	}
	last := lists[len(lists)-1]
	switch f := o.Job.File; {
	case f == nil:
		return advice.Usage("the crawl in %s has read %d of the %d seeds of %s so far: supply it again with "+
			"--input-file, or an empty file to skip the rest",
			o.Job.Dir, last.Taken, last.Seeds, last.Name)
	case f.Digest != last.Digest:
		o.Job.Warn(fmt.Errorf("the file %s has changed: %d of its %d previous seeds were read, and the rest "+
			"is skipped", last.Name, last.Taken, last.Seeds))
	}
	return nil
}

// check validates the job and creates the parts that depend only on it.
func (o *opening) check() (err error) {
	o.Journal = journal.Discard
	j := o.Job
	if o.SeedURLs, err = j.Normalize(); err != nil {
		return err
	}
	if err := j.CheckSlices(); err != nil {
		return err
	}
	if err := o.checkOrder(); err != nil {
		return err
	}
	if !j.HasSeeds() && (j.Fresh || j.Dir == "") {
		return j.NoSeedsError()
	}
	if j.Dir == "" && len(j.Crawl.Recrawl.Intervals) > 0 {
		return advice.Usage("recrawls need a crawl's folder, which has the earlier visits")
	}
	if o.willRun {
		if err := o.fitFiles(); err != nil {
			return err
		}
	}
	o.openScratch()
	j.Crawl.Shares, j.Crawl.Recrawl.Overrides = j.Shares(), j.Crawl.Overrides
	j.Fetch.Memory = j.Crawl.Shares.Answers()
	if j.Fetch.Jar = nil; !j.NoCookies {
		cfg := cookies.Config{Bytes: j.CookieMemory(), Configured: j.Fetch.Cookies.HaveLike}
		if j.Logins != nil {
			cfg.Private, cfg.PrivateFor = j.Logins.Private, j.Logins.PrivateFor
		}
		j.Fetch.Jar = cookies.NewJar(cfg)
	} else if j.Logins != nil {
		return advice.Usage("logins need cookies")
	}
	if o.Fetcher, err = fetch.New(j.FetchConfig()); err != nil {
		return advice.Usage("%w", err)
	}
	if j.Logins != nil {
		if o.logins, err = login.New(j.Logins, o.Fetcher, j.Fetch.Jar); err != nil {
			return advice.Usage("%w", err)
		}
	}
	o.Closers = slices.Insert(o.Closers, 0, func() error { o.Fetcher.Close(); return nil }) // it may write to scratch
	if o.block, err = o.blockList(); err != nil {
		return advice.Usage("%w", err)
	}
	return nil
}

func (o *opening) fitFiles() error {
	role := job.Alone
	if o.peers != nil {
		role = job.Member
	}
	if o.peers != nil && o.peers.Server {
		role = job.Server
	}
	read, err := o.Job.FitFiles(role)
	if err != nil || read == 0 {
		return err
	}
	o.disk = vfs.NewBounded(o.disk, read)
	if o.Folder != nil {
		o.Folder.Disk = o.disk
	}
	return nil
}

// openScratch creates a scratch file for long responses. It leaves half as much disk space free as the crawl.
func (o *opening) openScratch() {
	dir, room := "", func() (uint64, error) { return o.disk.Free(os.TempDir()) }
	if o.Job.Dir != "" {
		dir = folder.At(o.Job.Dir, o.disk).Path("state")
		room = func() (uint64, error) { return o.disk.Free(dir) }
	}
	o.scratch = vfs.NewScratch(dir, room, o.Job.Crawl.MinFree/2)
	o.Job.Fetch.Scratch = o.scratch
	o.Closers = append(o.Closers, o.scratch.Close)
}

func (o *opening) blockList() (*policy.BlockList, error) {
	rules, err := policy.ParseBlocks(o.Job.Block)
	if err != nil {
		return nil, err
	}
	if o.Job.BlockFile == "" {
		list := policy.NewBlockList()
		list.SetExtra(rules)
		return list, nil
	}
	now := o.Job.Crawl.Now
	if now == nil {
		now = time.Now
	}
	list, err := policy.OpenBlockList(o.Job.BlockFile, now, o.Job.Warn)
	list.SetExtra(rules)
	return list, err
}

// readFields returns the function that extracts records; nil without rules.
func readFields(j *job.Job) func(*page.Response, *page.Page) ([]page.Fields, error) {
	if j.Fields == nil {
		return nil
	}
	return j.Fields.Read
}

func (o *opening) assemble() error {
	j := o.Job
	parts := crawl.Parts{
		Scope: weburl.NewScope(j.Scope, j.Crawl.Overrides.Scopes()...), Block: o.block, Fetcher: o.Fetcher,
		NewParser: func(room int64) crawl.Parser { return parse.New(parserConfig(j, room)) }, Text: j.Text,
		Fields:    readFields(j),
		Archive:   j.Writes(job.WARC),
		Free:      o.free(),
		Journal:   o.Journal,
		Ranks:     o.ranks,
		Cookies:   j.Fetch.Jar,
		Logins:    o.logins,
		Listener:  j.Listener,
		Hooks:     o.hooks(),
		Header:    o.Fetcher.Header,
		NoSecrets: !o.Fetcher.HasSecrets(),
	}
	if o.willRun && j.Renderer != nil {
		parts.Renderer = j.Renderer
		o.Closers = append(o.Closers, j.Renderer.Close)
	}
	if o.willRun && j.Documents != nil {
		parts.Documents = j.Documents
		o.Closers = append(o.Closers, j.Documents.Close)
	}
	j.Crawl.PerHost = j.Frontier.PerHost
	if !o.willRun && o.State.IsNew() { // otherwise the state has the scope seeds
		for _, u := range o.SeedURLs {
			parts.Scope.AddSeed(u)
		}
	}
	if err := o.openStores(&parts); err != nil {
		return err
	}
	parts.Stores = o.Stores
	var err error
	if parts.Robots, err = o.openRules(); err != nil {
		return err
	}
	if j.File != nil && !j.File.Few() {
		parts.Seeds = j.File
	}
	if o.peers != nil {
		if err := o.peers.Join(o.State, &parts); err != nil {
			return err
		}
	}
	o.Engine = crawl.New(j.Crawl, parts, o.State)
	return nil
}

// hooks returns the job's hooks. The Request hook receives the headers that would be sent.
func (o *opening) hooks() crawl.Hooks {
	h := o.Job.Hooks
	if ask := h.Request; ask != nil {
		h.Request = func(it *item.Item, req *fetch.Request) (string, error) {
			if req.Header == nil { // otherwise an override has set it
				req.Header = o.Fetcher.Header(req.Trusted)
			}
			return ask(it, req)
		}
	}
	return h
}

// parserConfig returns the parser configuration for a slot with room bytes for the body. A page that exceeds the limits
// of an ordinary slot is parsed again in a large one with the full limits.
func parserConfig(j *job.Job, room int64) parse.Config {
	cfg := parse.Config{Agent: job.Agent, PlainText: true, Language: true, Scripts: j.ScriptPaths,
		AnchorText: j.AnchorText, MaxConverted: int(room / 3)}
	if room <= 1<<20 {
		cfg.MaxURLs, cfg.MaxConverted = int(room), 0
		cfg.MaxLinks = min(int(room/64), 10_000)
		cfg.MaxListed = cfg.MaxLinks
		return cfg
	}
	share := min(max(int64(j.Shares())/16, 8<<20), 1<<30)
	cfg.MaxURLs, cfg.MaxLinks = int(share), max(int(share/linkBytes), 50_000)
	return cfg
}

// linkBytes is the approximate memory of a link, besides its URL.
const linkBytes = 192

// free returns a function that returns the free space on the crawl's disk; nil without a folder.
func (o *opening) free() func() (uint64, error) {
	if o.Folder == nil {
		return nil
	}
	return func() (uint64, error) { return o.disk.Free(o.Job.Dir) }
}
