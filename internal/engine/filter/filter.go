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

// A Config configures a Pool.
type Config struct {
	Command string
	Name    string        // as used in reasons and reports; default: the command
	Crawl   string        // name of the crawl
	Procs   int           // number of processes; 0: one per processor
	Timeout time.Duration // of an answer; 0: 10 seconds
	Memory  int64         // bytes of address space per process, where the system can limit it; 0: unlimited
	Default Default
	Env     []string // environment of the processes; see Environ
	Log     func(string)
	// checks an answer beyond its form; may be nil
	Check func(point string, a *Answer) error

	start func() (*process, error) // starts a process instead of Command, in tests
}

// A Default is the result of a question that gets no answer.
type Default string

// The defaults. Stop is the usual one: a page that the filter should have excluded cannot be unfetched, and a URL that
// was dropped without an answer is easily overlooked. A crawl that stops loses nothing, and resumes once the program
// works.
const (
	Stop Default = "stop" // the crawl ends
	Keep Default = "keep" // continue as without the filter
	Drop Default = "drop"
)

// Defaults lists them.
var Defaults = []string{string(Stop), string(Keep), string(Drop)}

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 10 * time.Second

// DefaultMemory leaves room for runtimes that reserve much more than they use.
const DefaultMemory = 4e9

const (
	helloTimeout   = 30 * time.Second // for a program's first line
	firstPause     = 100 * time.Millisecond
	lastPause      = 30 * time.Second
	minGoodAnswers = 20              // after this many answers, a process counts as working
	maxWait        = time.Second     // longest pause that questions wait for
	maxQueued      = 256             // questions queued at a process
	stopDelay      = 3 * time.Second // for visits under way when a crawl ends
	queueShare     = 8               // the questions queued at a process take at most this part of the timeout
)

// A Pool asks the processes of a program.
type Pool struct {
	*Account
	cfg        Config
	choice     Choice
	ctx        context.Context
	end        context.CancelCauseFunc // with the error of all later questions as the cause
	closed     chan struct{}
	goroutines sync.WaitGroup // one per process, and drain
	alive      atomic.Int32
	usable     atomic.Int32 // processes that run, start, or pause for at most maxWait
	fresh      queue        // new calls
	retries    queue        // calls that one process has not answered
	room       chan struct{}
}

// A call is a question to the pool. Its answer or error is set when its group is done.
type call struct {
	question *Question
	line     []byte // question without its id
	answer   Answer
	err      error
	tried    bool // a process has failed to answer it
	sent     time.Time
	group    *sync.WaitGroup
}

// Open starts the processes. A program that cannot be started, or that does not announce its points, is a usage error.
// When ctx ends, programs are asked for a few more seconds, so that visits under way can finish; then Ask returns an
// error that is context.Canceled.
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
		return nil, advice.Usage("filter %s cannot be used: %w", p.name, err)
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

// Choice returns the program's choice of points and data.
func (p *Pool) Choice() *Choice { return &p.choice }

// Close ends the processes. Ask must not be called afterwards.
func (p *Pool) Close() {
	p.end(errClosed)
	close(p.closed)
	p.goroutines.Wait()
	p.FlushLog()
}

var errClosed = fmt.Errorf("filters are closed: %w", context.Canceled)

// ended returns the error of questions after the pool's end.
func (p *Pool) ended() error { return context.Cause(p.ctx) }

// drain answers all questions with an error once the processes have ended.
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
		for _, c := range p.dequeueAll() {
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

// dequeueAll takes all calls that no process has.
func (p *Pool) dequeueAll() (all []*call) {
	for _, q := range []*queue{&p.retries, &p.fresh} {
		for c := q.dequeue(); c != nil; c = q.dequeue() {
			all = append(all, c)
		}
	}
	return all
}

// Ask asks questions of one point, and returns their answers in the same order. It may be called concurrently. An error
// ends the crawl.
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

// answer completes a call.
func (p *Pool) answer(c *call, a Answer, err error) {
	c.answer, c.err = a, err
	if err == nil {
		p.CountAnswer(c.question.Point, &a)
	}
	<-p.room
	c.group.Done()
}

// retryOrDefault retries calls that a process has not answered; those that were retried before get the default. how
// describes how they were asked.
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

// unanswered completes a call with the default. If that is Stop, it ends the pool, as the page's other questions would
// probably fail in the same way.
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
				err = errors.New("its points or data differ from those of the process before")
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
					p.retryOrDefault(p.dequeueAll(), "", err)
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

// pause waits after a process has failed with err, for twice the last pause, and returns how long. If all processes
// pause, no question waits longer than maxWait for them: it gets the default.
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
				p.fresh.signal() // this call may have consumed the signal
				p.retries.signal()
			} else {
				for _, c := range p.dequeueAll() {
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

// begin starts a process and reads its first line.
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
		// a program that does not read will not answer
		_ = proc.hello(&Hello{Kumo: "filter", Version: Version, Crawl: p.cfg.Crawl})
	}()
	line, err := proc.line()
	if err == nil {
		*c, err = parseChoice(line)
	} else if !late.Stop() {
		err = fmt.Errorf("no first line within %v%s", helloTimeout, proc.unfinished())
	} else {
		err = fmt.Errorf("it ended before its first line: %s%s", proc.stop(patience), proc.unfinished())
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
