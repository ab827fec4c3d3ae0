package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/advice"
	"kumo/internal/batch/seqfile"
	"kumo/internal/collection"
	"kumo/internal/item"
	"kumo/internal/place"
	"kumo/internal/robots"
)

// A Pipeline runs a day of collections: rounds of crawl, parse and optimize, then merge and xml. It may be ended at any
// time: when it is run again, it goes on with the job that was not done.
type Pipeline struct {
	Deps
	Runner      Runner
	Collections []*collection.Collection
	Date        string // the day, see CheckDate
	Reducers    int    // of each job; 1 at least
	Fetching    Fetching
	Listener    Listener
}

// A Listener is told what a pipeline does. Fields may be nil. Progress is called from any goroutine, the others one at
// a time.
type Listener struct {
	Resumed  func(c *collection.Collection, s *State) // a day that was begun goes on, or is done already
	JobBegan func(j *JobInfo)
	Progress func(j *JobInfo, p Progress)
	JobEnded func(j *JobInfo, r *Result, took time.Duration)
	Ended    func(c *collection.Collection, s *State) // a collection's day is done
	Cut      func(c *collection.Collection, s *State) // rounds end though URLs are left
	Moved    func(c *collection.Collection, m *Move)  // a seed redirects elsewhere than before
}

// A JobInfo is a job of a pipeline.
type JobInfo struct {
	Step
	Collections []*collection.Collection
	Inputs      int // files
	Reducers    int
}

// A part is a collection with its state.
type part struct {
	*collection.Collection
	state *State
}

// Run runs the day to its end. An error is of the place, of a job, the context's, or [ErrNothing], which does not keep
// other collections from their end.
func (p *Pipeline) Run(ctx context.Context) (err error) {
	if p.Now == nil {
		p.Now = time.Now
	}
	if err := CheckDate(p.Date); err != nil {
		return advice.Usage("%w", err)
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	parts, err := p.open(ctx)
	if err != nil {
		return err
	}
	for {
		group := due(parts)
		if len(group) == 0 {
			return nothing(parts)
		}
		if err := p.step(ctx, group); err != nil {
			return damage(err)
		}
	}
}

// damage adds to the error of a file that cannot be read what can be done.
func damage(err error) error {
	if !errors.Is(err, seqfile.ErrDamaged) && !errors.Is(err, ErrDamaged) || advice.Of(err) != "" {
		return err
	}
	return advice.With(err, "put back a copy of the file, and give the same command again. Without one: if it is in "+
		"known/, remove that day's folder there, so that what the day before it knew counts; otherwise remove the day's "+
		"file in state/, so that the day is begun again")
}

// lock keeps other runs of the collections out.
func (p *Pipeline) lock(ctx context.Context) (unlock func() error, err error) {
	var locks []func() error
	unlock = func() (err error) {
		for _, l := range locks {
			err = errors.Join(err, l())
		}
		return err
	}
	locker, can := p.Place.(place.Locker)
	if !can {
		return unlock, nil
	}
	for _, c := range p.Collections {
		l, err := locker.Lock(ctx, path.Join(c.Directory, "state", "run"))
		if errors.Is(err, place.ErrLocked) {
			err = advice.With(fmt.Errorf("collection %s: %w", c.Code, err),
				"a collection is run once at a time: wait for the other run, or leave the collection out with --only")
		}
		if err != nil {
			return nil, errors.Join(err, unlock())
		}
		locks = append(locks, l)
	}
	return unlock, nil
}

// open reads the states of the collections, and takes in what a run that ended has left.
func (p *Pipeline) open(ctx context.Context) (parts []*part, err error) {
	for _, c := range p.Collections {
		s, err := ReadState(ctx, p.Place, c, p.Date)
		if err != nil {
			return nil, err
		}
		pt := &part{c, s}
		if s == nil || s.Nothing != "" {
			if err := p.begin(ctx, pt); err != nil {
				return nil, err
			}
		} else {
			if err := p.settle(ctx, pt); err != nil {
				return nil, err
			}
			if f := p.Listener.Resumed; f != nil {
				f(c, pt.state)
			}
		}
		parts = append(parts, pt)
	}
	return parts, p.sweep(ctx)
}

// begin begins the day of a collection with its seeds. What a run has left of which there is no state, or that came to
// nothing, would be taken for this one's.
func (p *Pipeline) begin(ctx context.Context, pt *part) error {
	moved, err := p.movedBefore(ctx, pt.Collection)
	if err != nil {
		return err
	}
	for _, folder := range []string{"in", WaitFolder, "out", folders[KindMove]} {
		if err := p.Place.Remove(ctx, DayFolder(pt.Collection, folder, p.Date)); err != nil {
			return err
		}
	}
	if err := p.removeRounds(ctx, pt); err != nil {
		return err
	}
	name := RoundFolder(pt.Collection, "in", p.Date, 0) + "/" + PartName(0, Sequence)
	err = WriteFile(ctx, p.Place, name, func(emit Emit) error {
		for _, seed := range pt.Seeds {
			in := InURL{Collection: pt.Code, URL: seed, Seed: true}
			if err := emit(in.Key(), in.Append(nil)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	pt.state = &State{Version: stateVersion, Collection: pt.Code, Date: p.Date, Next: Step{0, JobCrawl},
		Began: p.Now().UTC(), Moved: moved}
	return pt.state.write(ctx, p.Place, pt.Collection)
}

// movedBefore is where seeds redirected to on the last day that was done.
func (p *Pipeline) movedBefore(ctx context.Context, c *collection.Collection) (map[string]string, error) {
	date, err := knownDay(ctx, p.Place, c, p.Date)
	if err != nil || date == "" {
		return nil, err
	}
	s, err := ReadState(ctx, p.Place, c, date)
	if err != nil || s == nil {
		return nil, err
	}
	return reachedBySeeds(c.Seeds, s.Moved), nil
}

// due are the collections that are the farthest behind, whose next job they share.
func due(parts []*part) (group []*part) {
	for _, pt := range parts {
		if pt.state.Next.Job == "" {
			continue
		}
		if len(group) > 0 {
			c := pt.state.Next.compare(group[0].state.Next)
			if c > 0 {
				continue
			}
			if c < 0 {
				group = nil
			}
		}
		group = append(group, pt)
	}
	return group
}

// step runs the next job of a group of collections, all of which are at the same.
func (p *Pipeline) step(ctx context.Context, group []*part) error {
	step := group[0].state.Next
	conf := &Conf{Job: step.Job, Date: p.Date, Round: step.Round, Start: p.Now().UTC(), Reducers: max(p.Reducers, 1),
		Fetching: p.Fetching, Moved: map[string]map[string]string{}}
	var files []string
	var with []*part
	for _, pt := range group {
		some, err := inputs(ctx, p.Place, pt.Collection, pt.state.Next, p.Date)
		if err != nil {
			return err
		}
		if step.Job == JobCrawl && p.roundsEnd(pt, len(some)) {
			if err := p.endRounds(ctx, pt); err != nil {
				return err
			}
			continue
		}
		if err := p.replace(ctx, pt); err != nil {
			return err
		}
		with = append(with, pt)
		conf.Collections = append(conf.Collections, pt.Collection)
		conf.Moved[pt.Code] = pt.state.Moved
		if pt.state.Began.After(conf.Began) {
			conf.Began = pt.state.Began
		}
		files = append(files, some...)
	}
	if len(with) == 0 {
		return nil
	}
	if step.Job == JobCrawl {
		if err := p.planCrawl(ctx, conf, files); err != nil {
			return err
		}
	}
	work := path.Join(WorkFolder, fmt.Sprintf("%s-%s-%s-%016x", p.Date, roundName(step.Round), step.Job, groupHash(with)))
	for _, pt := range with {
		if err := p.abandon(ctx, pt, work); err != nil {
			return err
		}
		pt.state.Work = work
		if err := pt.state.write(ctx, p.Place, pt.Collection); err != nil {
			return err
		}
	}
	if err := p.run(ctx, conf, files, work); err != nil {
		return err
	}
	for _, pt := range with {
		if err := p.settle(ctx, pt); err != nil {
			return err
		}
	}
	return nil
}

// roundsEnd reports whether a collection's rounds are over: nothing is left to be fetched, or there were more rounds
// than its depth and its redirects can make, which is a fault that must not go on for ever.
func (p *Pipeline) roundsEnd(pt *part, files int) bool {
	step := pt.state.Next
	if step.Round == 0 {
		return false
	}
	if files == 0 {
		return true
	}
	if step.Round <= pt.Depth+2*pt.Redirects+robots.MaxRedirects+2 {
		return false
	}
	pt.state.Cut = fmt.Sprintf("after %d rounds", step.Round)
	if f := p.Listener.Cut; f != nil {
		f(pt.Collection, pt.state)
	}
	return true
}

// endRounds goes on to merge; or ends the day without it, if not one page was fetched: what is known stays what it was.
func (p *Pipeline) endRounds(ctx context.Context, pt *part) (err error) {
	s := pt.state
	s.Next.Job = JobMerge
	if s.Count(counterFound) == 0 {
		s.Next.Job = ""
		if s.Nothing, err = p.whyNothing(ctx, pt); err != nil {
			return err
		}
	}
	return s.write(ctx, p.Place, pt.Collection)
}

// replace removes what an earlier run of the day has left of what a job is about to publish: it may have had more
// parts.
func (p *Pipeline) replace(ctx context.Context, pt *part) error {
	of := map[string][]Kind{JobMerge: {KindDocument, KindKnown}, JobXML: {KindPage, KindApart, KindFields, KindTally}}
	for _, kind := range of[pt.state.Next.Job] {
		dir := DayFolder(pt.Collection, folders[kind], p.Date)
		infos, err := p.Place.List(ctx, dir)
		if err != nil {
			return err
		}
		for _, i := range infos {
			if i.IsDir {
				continue // rounds
			}
			if err := p.Place.Remove(ctx, path.Join(dir, i.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupHash tells groups of collections apart.
func groupHash(group []*part) uint64 {
	var codes []string
	for _, pt := range group {
		codes = append(codes, pt.Code)
	}
	slices.Sort(codes)
	return xxhash.Sum64String(strings.Join(codes, " "))
}

// A finished job leaves this beside its output, which it makes whole.
type finished struct {
	Step     Step            `json:"step"`
	Date     string          `json:"date"`
	Of       []finishedOf    `json:"of"`
	Began    time.Time       `json:"began"`
	Seconds  float64         `json:"seconds"`
	Inputs   int             `json:"inputs"`
	Failed   int             `json:"failed"`
	Counters []finishedCount `json:"counters"`
}

type finishedCount struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	N     int64  `json:"n"`
}

type finishedOf struct {
	Code      string `json:"code"`
	Directory string `json:"directory"`
}

const finishedName = "job.json"

// run runs a job into its work folder.
func (p *Pipeline) run(ctx context.Context, conf *Conf, files []string, work string) error {
	job, err := NewJob(conf, p.Deps)
	if err != nil {
		return err
	}
	info := &JobInfo{Step{conf.Round, conf.Job}, conf.Collections, len(files), conf.Reducers}
	if f := p.Listener.JobBegan; f != nil {
		f(info)
	}
	r := Run{Job: job, Conf: conf, Inputs: files, Output: work, Reducers: conf.Reducers}
	if f := p.Listener.Progress; f != nil {
		r.Progress = func(pr Progress) { f(info, pr) }
	}
	result, err := p.Runner.Run(ctx, r)
	if err != nil {
		return fmt.Errorf("round %d: %w", conf.Round, err)
	}
	took := p.Now().Sub(conf.Start)
	done := finished{Step: info.Step, Date: p.Date, Began: conf.Start, Seconds: took.Seconds(), Inputs: len(files),
		Failed: result.Failed}
	for _, c := range conf.Collections {
		done.Of = append(done.Of, finishedOf{c.Code, c.Directory})
	}
	for k, n := range result.Counters.All() {
		done.Counters = append(done.Counters, finishedCount{k.Group, k.Name, n})
	}
	slices.SortFunc(done.Counters, func(a, b finishedCount) int {
		return strings.Compare(a.Group+" "+a.Name, b.Group+" "+b.Name)
	})
	data, err := json.MarshalIndent(&done, "", " ")
	if err == nil {
		err = place.WriteFile(ctx, p.Place, path.Join(work, finishedName), data)
	}
	if err == nil && p.Listener.JobEnded != nil {
		p.Listener.JobEnded(info, result, took)
	}
	return err
}

// abandon does away with the job that an earlier run has begun, and not ended, of other collections together. One of
// the same is the runner's to go on with: it may still be under way, and ask the very hosts that this run would.
func (p *Pipeline) abandon(ctx context.Context, pt *part, work string) error {
	old := pt.state.Work
	if old == "" || old == work {
		return nil
	}
	if a, can := p.Runner.(Abandoner); can {
		if err := a.Abandon(ctx, old); err != nil {
			return err
		}
	}
	return p.Place.Remove(ctx, old)
}

// settle takes in the output of a collection's last job, if it is whole. It may be ended anywhere and done again.
func (p *Pipeline) settle(ctx context.Context, pt *part) error {
	s := pt.state
	if s.Work == "" {
		return nil
	}
	data, err := place.ReadFile(ctx, p.Place, path.Join(s.Work, finishedName))
	if errors.Is(err, fs.ErrNotExist) { // the job did not end: it is run again, or gone on with
		return nil
	}
	if err != nil {
		return err
	}
	var done finished
	if err := json.Unmarshal(data, &done); err != nil {
		return fmt.Errorf("%s: %w", s.Work, err)
	}
	if err := p.publish(ctx, pt, s.Work); err != nil {
		return err
	}
	if s.Next.Job == JobCrawl {
		if err := p.takeMoves(ctx, pt); err != nil {
			return err
		}
	}
	s.add(&done)
	if s.Next.Job == JobXML {
		if err := p.writeFields(ctx, pt); err != nil {
			return err
		}
		if err := p.writeCounts(ctx, pt); err != nil {
			return err
		}
	}
	work := s.Work
	s.Next, s.Work = s.Next.next(), ""
	if s.Next.Job == "" {
		s.Ended = p.Now().UTC()
	}
	if err := s.write(ctx, p.Place, pt.Collection); err != nil {
		return err
	}
	if f := p.Listener.Ended; f != nil && s.Next.Job == "" {
		f(pt.Collection, s)
	}
	return p.clean(ctx, pt, work, &done)
}

// add notes a job that was done.
func (s *State) add(f *finished) {
	d := Done{Step: s.Next, Began: f.Began, Seconds: f.Seconds, Inputs: f.Inputs, Failed: f.Failed,
		Counters: map[string]int64{}, Together: map[string]int64{}}
	for _, c := range f.Counters {
		switch c.Group {
		case s.Collection:
			d.Counters[c.Name] = c.N
		case JobCrawl:
			d.Together[c.Name] = c.N
		}
	}
	s.Done = append(s.Done, d)
}

// publish moves a collection's output of a job to where it belongs, and that of no collection.
func (p *Pipeline) publish(ctx context.Context, pt *part, work string) error {
	move := func(from, to string) error {
		err := p.Place.Rename(ctx, from, to)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another run, of another collection of the job, was quicker
		}
		return err
	}
	own := path.Join(work, pt.Directory)
	err := place.Walk(ctx, p.Place, own, func(name string, info place.Info) error {
		folder := path.Base(path.Dir(name))
		return move(name, path.Join(target(pt.Collection, pt.state.Next, p.Date, folder), info.Name))
	})
	if err != nil {
		return err
	}
	return place.Walk(ctx, p.Place, path.Join(work, RulesFolder), func(name string, info place.Info) error {
		return move(name, path.Join(RulesFolder, p.Date, path.Base(work)+"-"+info.Name))
	})
}

// clean removes what is not needed any more once a job is done: its work folder, and after a merge the rounds'
// Documents.
func (p *Pipeline) clean(ctx context.Context, pt *part, work string, done *finished) error {
	if err := p.drop(ctx, work, done); err != nil {
		return err
	}
	if pt.state.Next.Job == "" {
		return p.removeIndexParts(ctx, pt)
	}
	if pt.state.Next.Job != JobXML {
		return nil
	}
	if err := p.removeRounds(ctx, pt); err != nil {
		return err
	}
	return p.forget(ctx, pt)
}

// removeRounds removes the rounds' Documents.
func (p *Pipeline) removeRounds(ctx context.Context, pt *part) error {
	dir := DayFolder(pt.Collection, "doc", p.Date)
	infos, err := p.Place.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, i := range infos {
		if i.IsDir && strings.HasPrefix(i.Name, roundPrefix) {
			if err := p.Place.Remove(ctx, path.Join(dir, i.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop removes a job's work folder, if all that shared the job have taken their part.
func (p *Pipeline) drop(ctx context.Context, work string, done *finished) error {
	for _, f := range done.Of {
		s, err := ReadState(ctx, p.Place, &collection.Collection{Code: f.Code, Directory: f.Directory}, done.Date)
		if err != nil || s != nil && s.Work == work {
			return err
		}
	}
	return p.Place.Remove(ctx, work)
}

// sweep drops work folders that a run has left which died just before it did.
func (p *Pipeline) sweep(ctx context.Context) error {
	infos, err := p.Place.List(ctx, WorkFolder)
	if err != nil {
		return err
	}
	for _, i := range infos {
		work := path.Join(WorkFolder, i.Name)
		data, err := place.ReadFile(ctx, p.Place, path.Join(work, finishedName))
		if errors.Is(err, fs.ErrNotExist) {
			continue // under way, or its collections remove it when they are run
		}
		var done finished
		if err == nil {
			err = json.Unmarshal(data, &done)
		}
		if err == nil {
			err = p.drop(ctx, work, &done)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keptKnown is how many days what was known is kept: the last is what the next goes by, the one before is there for who
// runs the last again.
const keptKnown = 2

// forget removes what was known on earlier days.
func (p *Pipeline) forget(ctx context.Context, pt *part) error {
	days, err := Days(ctx, p.Place, pt.Collection, "known")
	if err != nil {
		return err
	}
	for _, d := range days[:max(0, len(days)-keptKnown)] {
		if err := p.Place.Remove(ctx, DayFolder(pt.Collection, "known", d)); err != nil {
			return err
		}
	}
	return nil
}

// Counts are what a day of a collection came to, in counts.json beside its XML.
type Counts struct {
	Collection string           `json:"collection"`
	Date       string           `json:"date"`
	Rounds     int              `json:"rounds"`
	Sites      int              `json:"sites"`  // registered domains with pages in the collection's language
	Counts     map[string]int64 `json:"counts"` // of merge and xml: "pages", "bytes", "kept", "charset gbk", …
}

func (p *Pipeline) writeCounts(ctx context.Context, pt *part) error {
	sites, err := p.writeIndexes(ctx, pt)
	if err != nil {
		return err
	}
	c := Counts{Collection: pt.Code, Date: p.Date, Rounds: pt.state.Next.Round, Sites: sites, Counts: map[string]int64{}}
	for i := range pt.state.Done {
		if d := &pt.state.Done[i]; d.Job == JobMerge || d.Job == JobXML {
			for name, n := range d.Counters {
				c.Counts[name] += n
			}
		}
	}
	data, err := json.MarshalIndent(&c, "", " ")
	if err != nil {
		return err
	}
	return place.WriteFile(ctx, p.Place, path.Join(DayFolder(pt.Collection, "xml", p.Date), CountsName),
		append(data, '\n'))
}

const (
	talliedHosts = 1 << 18 // whose URLs are counted
	plannedHosts = 4096    // that are given their partition; others go by their hash, of which there are enough
)

// planCrawl finds what robots.txt files have answered today, and spreads the hosts of a round over the partitions.
func (p *Pipeline) planCrawl(ctx context.Context, conf *Conf, files []string) (err error) {
	if conf.Rules, err = FilesIn(ctx, p.Place, path.Join(RulesFolder, p.Date)); err != nil || conf.Reducers < 2 {
		return err
	}
	job, err := newSetup(conf, p.Deps)
	if err != nil {
		return err
	}
	tally := newHostTally(talliedHosts)
	for _, name := range files {
		for r, err := range ReadFile(ctx, p.Place, name) {
			if err == nil {
				err = job.tally(r, tally)
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	hosts := tally.heaviest(plannedHosts)
	threads := 0
	var interval time.Duration
	for _, c := range conf.Collections {
		threads += c.Threads
		interval = max(interval, time.Duration(c.Interval))
	}
	delays, err := p.delays(ctx, conf)
	if err != nil {
		return err
	}
	for i := range hosts {
		hosts[i].Interval = max(interval, min(delays[hosts[i].Host], mostDelay))
	}
	conf.Hosts = PlanHosts(hosts, conf.Reducers, threads)
	return nil
}

// tally counts a record of a crawl's input.
func (s *setup) tally(r Record, t *hostTally) error {
	if KindOf(r.Value) != KindKnown {
		_, url, err := SplitKey(r.Key)
		t.add(item.HostOf(url))
		return err
	}
	k, err := ReadKnown(r.Key, r.Value)
	if err != nil {
		return err
	}
	m, err := s.member(k.Collection)
	if err != nil {
		return err
	}
	if s.fromKnown(m, &k).Due {
		t.add(item.HostOf(k.URL))
	}
	return nil
}

// delays are what robots.txt files have asked for today, by host.
func (p *Pipeline) delays(ctx context.Context, conf *Conf) (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	for _, name := range conf.Rules {
		for r, err := range ReadFile(ctx, p.Place, name) {
			if err != nil {
				return nil, err
			}
			rules, err := ReadRules(r.Key, r.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if delay, asked := robots.FromStatus(rules.Status, rules.Body, conf.Fetching.Agent).Delay(); asked {
				host := item.HostOf(rules.Origin + "/")
				all[host] = max(all[host], delay)
			}
		}
	}
	return all, nil
}
