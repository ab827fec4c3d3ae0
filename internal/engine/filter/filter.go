// Package filter sends links, requests and records to a program of the user, which drops or changes them. The program
// reads one JSON question per line and writes one JSON answer per line; see docs/reference/filters.md.
//
// A [Pool] runs several processes of one program. The number of questions queued at a process depends on its speed: as
// many as it answers in a fraction of the answer timeout. A fast process thus receives batches, and a slow process is
// not mistaken for a hanging one.
//
// # Failures
//
// A process that exits, exceeds the timeout or writes an invalid answer is killed and replaced after a growing pause.
// Its unanswered questions are retried once. Each is sent alone to an idle process, so that a question that crashes
// processes affects no other. After a second failure the question gets the default answer. If the default is to stop,
// the first unanswered question ends the pool.
//
// Questions do not wait for long pauses. While all processes pause for more than a second, each question gets the
// default at once.
//
// The package does not depend on crawls or pages; package ask converts an engine's questions.
package filter

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/advice"
)

// A Config is how a program is asked.
type Config struct {
	Command string
	Name    string        // as reasons and reports have it; default the command
	Crawl   string        // its name
	Procs   int           // processes; 0: as many as there are processors
	Timeout time.Duration // for an answer; 0: 10 seconds
	Memory  int64         // bytes of address space of each process, where the system can bound that; 0: any
	Default Default
	Env     []string // of the process; see Environ
	Log     func(string)
	// log what is wrong with an answer for who asked, beyond its form; nil: nothing
	Check func(point string, a *Answer) error

	start func() (*process, error) // in place of the command
}

// A Default is what becomes of a question that nobody answers.
type Default string

// The defaults. Stop is the ordinary one: what a filter was to keep out cannot be unfetched, and what is dropped
// without its word is missed later, or never; a crawl that ends has lost nothing, and goes on once the program works.
const (
	Stop Default = "stop" // the crawl ends
	Keep Default = "keep" // as if there were no filter
	Drop Default = "drop"
)

// Defaults are all of them.
var Defaults = []string{string(Stop), string(Keep), string(Drop)}

// DefaultTimeout is how long an answer may take.
const DefaultTimeout = 10 * time.Second

// DefaultMemory is room for runtimes that reserve much more than they use.
const DefaultMemory = 4e9

const (
	helloTimeout   = 30 * time.Second // for a program's first line
	firstPause     = 100 * time.Millisecond
	lastPause      = 30 * time.Second
	minGoodAnswers = 20              // answers after which a process counts as one that works
	maxWait        = time.Second     // longest pause that questions wait for
	maxQueued      = 256             // questions at a process
	stopDelay      = 3 * time.Second // for visits that are under way when a crawl is to end
	queueShare     = 8               // of the time for an answer is what may wait at a process
)

// A Pool asks a program.
type Pool struct {
	*Account
	cfg        Config
	choice     Choice
	ctx        context.Context
	end        context.CancelCauseFunc // the cause is the error of all questions from then on
	closed     chan struct{}
	goroutines sync.WaitGroup // processes, and who answers once they are gone
	alive      atomic.Int32
	usable     atomic.Int32 // processes that run or start, or will after a pause of at most maxWait
	fresh      queue        // of calls
	retries    queue        // that one process has not answered
	room       chan struct{}
}

// A call is a question on its way. Its answer, or error, is there when its group is done.
type call struct {
	question *Question
	line     []byte // without its id
	answer   Answer
	err      error
	tried    bool // by a process, in vain
	sent     time.Time
	group    *sync.WaitGroup
}

// Open starts the processes. A program that cannot be started, or that does not say what it wants, is wrong usage. When
// ctx ends, programs are asked for some seconds more, so that visits that are under way have their end; then Ask
// returns an error that is context.Canceled.
func Open(ctx context.Context, cfg Config) (*Pool, error) {
	p := &Pool{Account: NewAccount(&cfg), cfg: cfg, fresh: newQueue(), retries: newQueue()}
	if p.cfg.Procs <= 0 {
		p.cfg.Procs = runtime.GOMAXPROCS(0)
	}
	if p.cfg.Timeout <= 0 {
		p.cfg.Timeout = DefaultTimeout
	}
	if p.cfg.start == nil {
		words, err := Words(cfg.Command)
		if err != nil {
			return nil, advice.Usage("filter %s: %w", p.name, err)
		}
		if words, err = find(words); err != nil {
			return nil, advice.Usage("filter %s: %w", p.name, err)
		}
		p.cfg.start = func() (*process, error) { return startCommand(words, &p.cfg, p.Say) }
	}
	p.room, p.closed = make(chan struct{}, p.cfg.Procs*maxQueued), make(chan struct{})
	p.ctx, p.end = context.WithCancelCause(context.WithoutCancel(ctx))
	halt := context.AfterFunc(ctx, func() { p.end(errClosed) })
	first, err := p.begin(&p.choice)
	halt()
	if ctx.Err() != nil {
		p.end(errClosed)
		if err == nil {
			first.stop(0)
		}
		return nil, ctx.Err()
	}
	if err != nil {
		p.end(errClosed)
		return nil, advice.Usage("filter %s cannot be asked: %w", p.name, err)
	}
	p.alive.Store(1)
	p.usable.Store(int32(p.cfg.Procs))
	p.goroutines.Go(func() { p.run(first) })
	for range p.cfg.Procs - 1 {
		p.goroutines.Go(func() { p.run(nil) })
	}
	p.goroutines.Go(func() { p.drain(ctx) })
	return p, nil
}

// Choice is what the program wants to be asked.
func (p *Pool) Choice() *Choice { return &p.choice }

// Close ends the processes. Nothing is asked afterwards.
func (p *Pool) Close() {
	p.end(errClosed)
	close(p.closed)
	p.goroutines.Wait()
	p.FlushLog()
}

var errClosed = fmt.Errorf("filters are not asked any more: %w", context.Canceled)

// ended is the error of questions that are asked after the pool's end.
func (p *Pool) ended() error { return context.Cause(p.ctx) }

// drain answers in the place of processes from when these are ended.
func (p *Pool) drain(ctx context.Context) {
	select {
	case <-ctx.Done():
		late := time.NewTimer(stopDelay)
		defer late.Stop()
		select {
		case <-late.C:
		case <-p.ctx.Done():
		}
		p.end(errClosed)
	case <-p.ctx.Done():
	}
	for {
		for _, c := range p.takeQueued() {
			p.answer(c, Answer{}, p.ended())
		}
		select {
		case <-p.fresh.ready:
		case <-p.retries.ready:
		case <-p.closed:
			return
		}
	}
}

// takeQueued takes all calls that no process has.
func (p *Pool) takeQueued() (all []*call) {
	for _, q := range []*queue{&p.retries, &p.fresh} {
		for c := q.take(); c != nil; c = q.take() {
			all = append(all, c)
		}
	}
	return all
}

// Ask asks questions of one point, and returns their answers in the same order. The error is one after which the crawl
// is to end. It may be called by many at once.
func (p *Pool) Ask(questions []Question) ([]Answer, error) {
	calls, group := make([]call, len(questions)), sync.WaitGroup{}
	for i := range questions {
		line, err := questions[i].encode()
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", p.name, err)
		}
		calls[i] = call{question: &questions[i], line: line, group: &group}
	}
	group.Add(len(calls))
	for i := range calls {
		p.room <- struct{}{}
		p.fresh.put(&calls[i])
	}
	group.Wait()
	answers := make([]Answer, len(calls))
	for i := range calls {
		if calls[i].err != nil {
			return nil, calls[i].err
		}
		answers[i] = calls[i].answer
	}
	return answers, nil
}

// answer ends a call.
func (p *Pool) answer(c *call, a Answer, err error) {
	c.answer, c.err = a, err
	if err == nil {
		p.CountAnswer(c.question.Point, &a)
	}
	<-p.room
	c.group.Done()
}

// retryOrDefault has calls asked again that a process has not answered, and gives the default to those for which that was the
// second time; how says how they were asked.
func (p *Pool) retryOrDefault(calls []*call, how string, why error) {
	for _, c := range calls {
		if !c.tried {
			c.tried = true
			p.retries.put(c)
			continue
		}
		p.unanswered(c, how, why)
	}
}

// unanswered ends a call with the default. Where that is to stop, it ends the pool: the other questions of a page would
// only repeat what this one has shown.
func (p *Pool) unanswered(c *call, how string, why error) {
	if p.ctx.Err() != nil {
		p.answer(c, Answer{}, p.ended())
		return
	}
	a, err := p.Unanswered(c.question, how, why)
	if err != nil {
		p.end(err)
	}
	p.answer(c, a, err)
}

// run keeps one process running until the pool is closed.
func (p *Pool) run(first *process) {
	pause := time.Duration(0)
	for proc := first; ; proc = nil {
		if proc == nil {
			if p.ctx.Err() != nil {
				return
			}
			var c Choice
			var err error
			if proc, err = p.begin(&c); err == nil && !c.equal(&p.choice) {
				err = errors.New("it wants to be asked something else than the process before")
				proc.stop(0)
			}
			if p.ctx.Err() != nil {
				if err == nil {
					proc.stop(patience)
				}
				return
			}
			if err != nil {
				p.reportFailure(err)
				if p.alive.Load() == 0 {
					p.retryOrDefault(p.takeQueued(), "", err)
				}
				pause = p.pause(pause, err)
				continue
			}
			p.alive.Add(1)
		}
		answered, left, err := p.serve(proc)
		p.alive.Add(-1)
		if err == nil { // the pool is closed
			proc.stop(patience)
			for _, c := range left {
				p.answer(c, Answer{}, p.ended())
			}
			return
		}
		p.reportFailure(err)
		p.retryOrDefault(left, ", asked twice", err)
		if answered >= minGoodAnswers {
			pause = 0
		}
		pause = p.pause(pause, err)
	}
}

// pause pauses for twice the last pause after a process has failed with err, and returns for how long. No question waits
// longer than maxWait for processes that all pause: it gets the default.
func (p *Pool) pause(last time.Duration, err error) time.Duration {
	pause := min(max(2*last, firstPause), lastPause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var fresh, again <-chan struct{} // nil: another process reads the queues
	if pause > maxWait {
		p.usable.Add(-1)
		defer p.usable.Add(1)
		fresh, again = p.fresh.ready, p.retries.ready
	}
	for {
		if fresh != nil {
			if p.usable.Load() > 0 {
				fresh, again = nil, nil
				p.fresh.signal() // it may be this call that has received it
				p.retries.signal()
			} else {
				for _, c := range p.takeQueued() {
					p.unanswered(c, "", fmt.Errorf("%w, the last time: %w", errUnreliable, err))
				}
			}
		}
		select {
		case <-timer.C:
			return pause
		case <-p.ctx.Done():
			return pause
		case <-fresh:
		case <-again:
		}
	}
}

// reportFailure counts and logs the failure of a process.
func (p *Pool) reportFailure(err error) {
	p.CountFailure(err)
	p.say(fmt.Sprintf("failed: %v", err))
}

// startCommand starts a process and reads its first line.
func (p *Pool) begin(c *Choice) (*process, error) {
	proc, err := p.cfg.start()
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(helloTimeout, proc.kill)
	defer late.Stop()
	halt := context.AfterFunc(p.ctx, proc.kill)
	defer halt()
	greeted := make(chan struct{})
	go func() {
		defer close(greeted)
		_ = proc.hello(&Hello{Kumo: "filter", Version: Version, Crawl: p.cfg.Crawl}) // who does not read will not answer
	}()
	line, err := proc.line()
	if err == nil {
		*c, err = parseChoice(line)
	} else if !late.Stop() {
		err = fmt.Errorf("it has not said within %v what it wants to be asked%s", helloTimeout, proc.unfinished())
	} else {
		err = fmt.Errorf("it ended before it said what it wants to be asked: %s%s", proc.stop(patience), proc.unfinished())
	}
	if err != nil {
		proc.stop(0)
	}
	<-greeted
	return proc, err
}

func (c *Choice) equal(d *Choice) bool {
	return !slices.ContainsFunc(Points, func(p string) bool { return c.Asks(p) != d.Asks(p) }) &&
		!slices.ContainsFunc(Wants, func(w string) bool { return c.Wants(w) != d.Wants(w) })
}
