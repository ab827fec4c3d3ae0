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

	"kumo/internal/archive/place"
)

// A jobReport is written beside a job's output when the job has ended. Its presence means that the output is complete.
type jobReport struct {
	Step        Step               `json:"step"`
	Date        string             `json:"date"`
	Collections []reportCollection `json:"of"`
	Began       time.Time          `json:"began"`
	Seconds     float64            `json:"seconds"`
	Inputs      int                `json:"inputs"`
	Failed      int                `json:"failed"`
	Counters    []reportCount      `json:"counters"`
}

type reportCount struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	N     int64  `json:"n"`
}

type reportCollection struct {
	Code      string `json:"code"`
	Directory string `json:"directory"`
}

const reportName = "job.json"

// run runs a job in its work folder.
func (p *Pipeline) run(ctx context.Context, conf *Conf, files []string, work string) error {
	job, err := NewJob(conf, p.Deps)
	if err != nil {
		return err
	}
	info := &JobInfo{Step{conf.Round, conf.Job}, conf.Collections, len(files), conf.Reducers}
	if f := p.Listener.JobStarted; f != nil {
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
	done := jobReport{Step: info.Step, Date: p.Date, Began: conf.Start, Seconds: took.Seconds(), Inputs: len(files),
		Failed: result.Failed}
	for _, c := range conf.Collections {
		done.Collections = append(done.Collections, reportCollection{c.Code, c.Directory})
	}
	for k, n := range result.Counters.All() {
		done.Counters = append(done.Counters, reportCount{k.Group, k.Name, n})
	}
	slices.SortFunc(done.Counters, func(a, b reportCount) int {
		return strings.Compare(a.Group+" "+a.Name, b.Group+" "+b.Name)
	})
	data, err := json.MarshalIndent(&done, "", " ")
	if err == nil {
		err = place.WriteFile(ctx, p.Place, path.Join(work, reportName), data)
	}
	if err == nil && p.Listener.JobEnded != nil {
		p.Listener.JobEnded(info, result, took)
	}
	return err
}

// abandon ends the unfinished job of an earlier run with other collections. A job with the same collections is left to
// the runner, which resumes it: it may still be active and send requests to the hosts of this run.
func (p *Pipeline) abandon(ctx context.Context, pt *collectionDay, work string) error {
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

// publishFinished publishes the output of a collection's last job, if it is complete. It can be interrupted and
// repeated.
func (p *Pipeline) publishFinished(ctx context.Context, pt *collectionDay) error {
	s := pt.state
	if s.Work == "" {
		return nil
	}
	var done jobReport
	err := ReadJSON(ctx, p.Place, path.Join(s.Work, reportName), &done)
	if errors.Is(err, fs.ErrNotExist) { // the job did not end: it is repeated or resumed
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.publish(ctx, pt, s.Work); err != nil {
		return err
	}
	if s.Next.Job == JobCrawl {
		if err := p.applyMoves(ctx, pt); err != nil {
			return err
		}
	}
	s.addJob(&done)
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

// addJob adds a completed job.
func (s *State) addJob(f *jobReport) {
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

// publish moves a job's output of a collection, and its shared output, to the final folders.
func (p *Pipeline) publish(ctx context.Context, pt *collectionDay, work string) error {
	move := func(from, to string) error {
		err := p.Place.Rename(ctx, from, to)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another run, with another collection of the job, moved it first
		}
		return err
	}
	own := path.Join(work, pt.Directory)
	err := place.Walk(ctx, p.Place, own, func(name string, info place.Info) error {
		folder := path.Base(path.Dir(name))
		return move(name, path.Join(targetFolder(pt.Collection, pt.state.Next, p.Date, folder), info.Name))
	})
	if err != nil {
		return err
	}
	return place.Walk(ctx, p.Place, path.Join(work, RobotsFolder), func(name string, info place.Info) error {
		return move(name, path.Join(RobotsFolder, p.Date, path.Base(work)+"-"+info.Name))
	})
}
