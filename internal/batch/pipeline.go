package batch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/seqfile"
	"kumo/internal/content/robots"
)

// A Pipeline runs a day of collections: rounds of crawl, parse and optimize, then merge and xml. It can be interrupted
// at any time; the next run resumes with the unfinished job.
type Pipeline struct {
	Deps
	Runner      Runner
	Collections []*collection.Collection
	Date        string // the day, see CheckDate
	Reducers    int    // reducers of each job; at least 1
	Fetching    Fetching
	Listener    Listener
}

// A Listener receives a pipeline's events. Fields may be nil. Progress is called from any goroutine, the others one at
// a time.
type Listener struct {
	Resumed    func(c *collection.Collection, s *State) // a started day is resumed, or is already done
	JobStarted func(j *JobInfo)
	Progress   func(j *JobInfo, p Progress)
	JobEnded   func(j *JobInfo, r *Result, took time.Duration)
	Ended      func(c *collection.Collection, s *State) // a collection's day is done
	RoundsCut  func(c *collection.Collection, s *State) // rounds were ended although URLs were left
	Moved      func(c *collection.Collection, m *Move)  // the redirect of a seed changed
}

// JobInfo describes a job of a pipeline.
type JobInfo struct {
	Step
	Collections []*collection.Collection
	Inputs      int // number of files
	Reducers    int
}

// A collectionDay is a collection with its state.
type collectionDay struct {
	*collection.Collection
	state *State
}

// Run runs the day to its end. It returns errors of storage and jobs, the context's error, or [ErrNothingFetched]. The
// last does not stop other collections.
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
	parts, err := p.openDays(ctx)
	if err != nil {
		return err
	}
	for {
		group := furthestBehind(parts)
		if len(group) == 0 {
			return nothingFetched(parts)
		}
		if err := p.runStep(ctx, group); err != nil {
			return withDamageAdvice(err)
		}
	}
}

// withDamageAdvice adds advice to the error of an unreadable file.
func withDamageAdvice(err error) error {
	if !errors.Is(err, seqfile.ErrDamaged) && !errors.Is(err, ErrDamaged) || advice.Of(err) != "" {
		return err
	}
	return advice.With(err, "restore the file from a backup and repeat the command. Without a backup: if it is in "+
		"known/, remove that day's folder there, so that the day before is used; otherwise remove the day's "+
		"file in state/ to start the day again")
}

// lock prevents other runs of the collections.
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
				"a collection can run only once at a time: wait for the other run, or omit the collection with --only")
		}
		if err != nil {
			return nil, errors.Join(err, unlock())
		}
		locks = append(locks, l)
	}
	return unlock, nil
}

// openDays reads the states of the collections, and publishes the output of interrupted runs.
func (p *Pipeline) openDays(ctx context.Context) (parts []*collectionDay, err error) {
	for _, c := range p.Collections {
		s, err := ReadState(ctx, p.Place, c, p.Date)
		if err != nil {
			return nil, err
		}
		pt := &collectionDay{c, s}
		if s == nil || s.Nothing != "" {
			if err := p.startDay(ctx, pt); err != nil {
				return nil, err
			}
		} else {
			if err := p.publishFinished(ctx, pt); err != nil {
				return nil, err
			}
			if f := p.Listener.Resumed; f != nil {
				f(c, pt.state)
			}
		}
		if !pt.state.IsDone() {
			if err := writeSettings(ctx, p.Place, c, p.Date); err != nil {
				return nil, err
			}
		}
		parts = append(parts, pt)
	}
	return parts, p.sweepWork(ctx)
}

// startDay starts the day of a collection with its seeds. It first removes files of an earlier run without a state or
// without a page, which would be mistaken for this run's.
func (p *Pipeline) startDay(ctx context.Context, pt *collectionDay) error {
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

// movedBefore returns the redirects of seeds on the last completed day.
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

// furthestBehind returns the collections with the earliest next job, which they share.
func furthestBehind(parts []*collectionDay) (group []*collectionDay) {
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

// runStep runs the next job of a group of collections at the same step.
func (p *Pipeline) runStep(ctx context.Context, group []*collectionDay) error {
	step := group[0].state.Next
	conf := &Conf{Job: step.Job, Date: p.Date, Round: step.Round, Start: p.Now().UTC(), Reducers: max(p.Reducers, 1),
		Fetching: p.Fetching, Moved: map[string]map[string]string{}}
	var files []string
	var with []*collectionDay
	for _, pt := range group {
		some, err := inputFiles(ctx, p.Place, pt.Collection, pt.state.Next, p.Date)
		if err != nil {
			return err
		}
		if step.Job == JobCrawl && p.roundsOver(pt, len(some)) {
			if err := p.endRounds(ctx, pt); err != nil {
				return err
			}
			continue
		}
		if err := p.removeOld(ctx, pt); err != nil {
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
		if err := p.publishFinished(ctx, pt); err != nil {
			return err
		}
	}
	return nil
}

// roundsOver reports whether a collection's rounds are over: no URLs are left, or there were more rounds than its depth
// and redirects permit. The latter is a fault that must not loop forever.
func (p *Pipeline) roundsOver(pt *collectionDay, files int) bool {
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
	if f := p.Listener.RoundsCut; f != nil {
		f(pt.Collection, pt.state)
	}
	return true
}

// endRounds continues with merge. If no page was fetched, it ends the day instead, and the known URLs stay unchanged.
func (p *Pipeline) endRounds(ctx context.Context, pt *collectionDay) (err error) {
	s := pt.state
	s.Next.Job = JobMerge
	if s.Count(counterFound) == 0 {
		s.Next.Job = ""
		if s.Nothing, err = p.sampleProblems(ctx, pt); err != nil {
			return err
		}
	}
	return s.write(ctx, p.Place, pt.Collection)
}

// removeOld removes an earlier run's files that a job is about to publish again: that run may have had more parts.
func (p *Pipeline) removeOld(ctx context.Context, pt *collectionDay) error {
	of := map[string][]Kind{JobMerge: {KindDocument, KindKnown}, JobXML: {KindPage, KindOther, KindFields, KindTally}}
	for _, kind := range of[pt.state.Next.Job] {
		dir := DayFolder(pt.Collection, folders[kind], p.Date)
		infos, err := p.Place.List(ctx, dir)
		if err != nil {
			return err
		}
		for _, i := range infos {
			if i.IsDir {
				continue // a folder of rounds
			}
			if err := p.Place.Remove(ctx, path.Join(dir, i.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupHash identifies a group of collections.
func groupHash(group []*collectionDay) uint64 {
	var codes []string
	for _, pt := range group {
		codes = append(codes, pt.Code)
	}
	slices.Sort(codes)
	return xxhash.Sum64String(strings.Join(codes, " "))
}
