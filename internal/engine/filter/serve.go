package filter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A serving is a process that is asked.
type serving struct {
	pool   *Pool
	proc   *process
	wake   chan struct{} // something was answered
	failed chan struct{} // the process is no more, or is to be none

	mu         sync.Mutex
	inFlight   map[uint64]*call // what it was asked, by id
	oldest     uint64           // no id below is at it
	next       uint64
	answered   int
	last       time.Time     // of the last answer, or of a question to an idle process
	answerTime time.Duration // what an answer takes, about; 0: not known
	why        error         // it is gone
	watch      *time.Timer
}

// serve asks a process until it fails, or the pool is closed: the error is nil then. It returns what was not answered.
func (p *Pool) serve(proc *process) (answered int, left []*call, err error) {
	s := &serving{
		pool:     p,
		proc:     proc,
		wake:     make(chan struct{}, 1),
		failed:   make(chan struct{}),
		inFlight: map[uint64]*call{},
		next:     1,
		oldest:   1,
	}
	s.watch = time.AfterFunc(time.Hour, s.expire)
	halt := context.AfterFunc(p.ctx, func() { proc.stop(patience) }) // or one that does not read would hold the end up
	defer halt()
	read := make(chan struct{})
	go func() { defer close(read); s.read() }()
	s.write()
	s.mu.Lock()
	s.watch.Stop()
	err = s.why
	s.mu.Unlock()
	if p.ctx.Err() != nil {
		err = nil           // if it has ended, that is why
		proc.stop(patience) // before what it still says is waited for
	}
	<-read
	if errors.Is(err, errTimeout) || errors.Is(err, errExited) {
		err = fmt.Errorf("%w%s", err, proc.unfinished())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.inFlight)) {
		left = append(left, s.inFlight[id])
	}
	return s.answered, left, err
}

// write gives the process questions as it answers.
func (s *serving) write() {
	var buf []byte
	for {
		fresh, again := s.sources()
		select {
		case <-s.pool.ctx.Done():
			return
		case <-s.failed:
			return
		case <-s.wake:
			continue
		case <-again:
			buf = s.take(buf[:0], &s.pool.retries, 1)
		case <-fresh:
			buf = buf[:0]
			if again != nil { // an idle process: first what has failed once, so that it soon has an answer or the default
				buf = s.take(buf, &s.pool.retries, 1)
			}
			alone := len(buf) > 0
			if !alone {
				buf = s.take(buf, &s.pool.fresh, s.free())
			}
			if (alone || len(buf) == 0) && !s.pool.fresh.empty() {
				s.pool.fresh.signal() // another takes them, or this one later: it is busy, or has become slower
			}
		}
		if len(buf) == 0 {
			continue
		}
		if s.proc.write(buf) != nil { // it has ended, which who reads will find, or reads no more, and will be late
			select {
			case <-s.pool.ctx.Done():
			case <-s.failed:
			}
			return
		}
		if cap(buf) > keptRoom {
			buf = nil
		}
	}
}

const (
	keptRoom = 256 << 10 // bytes of what was written
	atOnce   = 64 << 10  // bytes of questions that are written together
)

// sources are where the next question may come from now.
func (s *serving) sources() (fresh, again <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inFlight {
		if c.tried { // which is alone
			return nil, nil
		}
		break
	}
	if len(s.inFlight) == 0 {
		again = s.pool.retries.ready
	}
	// who has nothing to do takes what comes first: the others may take what is to be asked again
	if len(s.inFlight) == 0 || len(s.inFlight) < s.capacity() && s.pool.retries.empty() {
		fresh = s.pool.fresh.ready
	}
	return fresh, again
}

// capacity is how many questions the process may have.
func (s *serving) capacity() int {
	if s.answerTime <= 0 {
		return 1
	}
	return int(max(1, min(maxQueued, s.pool.cfg.Timeout/queueShare/s.answerTime)))
}

func (s *serving) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capacity() - len(s.inFlight)
}

// take takes so many calls, and gives their lines.
func (s *serving) take(buf []byte, q *queue, most int) []byte {
	for range most {
		c := q.take()
		if c == nil {
			break
		}
		buf = append(buf, `{"id":`...)
		buf = strconv.AppendUint(buf, s.register(c), 10)
		buf = append(append(buf, ','), c.line...)
		if len(buf) > atOnce {
			break
		}
	}
	return buf
}

// register gives a call its id at the process.
func (s *serving) register(c *call) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	c.sent = time.Now()
	if s.inFlight[id] = c; len(s.inFlight) == 1 {
		s.oldest, s.last = id, c.sent
		s.watch.Reset(s.pool.cfg.Timeout)
	}
	return id
}

// expire is called when the oldest question may have waited for too long.
func (s *serving) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.inFlight) == 0 {
		return
	}
	for s.inFlight[s.oldest] == nil {
		s.oldest++
	}
	if rest := s.pool.cfg.Timeout - time.Since(s.inFlight[s.oldest].sent); rest > 0 {
		s.watch.Reset(rest)
		return
	}
	s.failLocked(fmt.Errorf("%w within %v", errTimeout, s.pool.cfg.Timeout))
}

// What has become of a process.
var (
	errTimeout = errors.New("no answer")
	errExited  = errors.New("it ended")

	errUnreliable = errors.New("it fails again and again")

	ErrInvalidAnswer = errors.New("not an answer")
)

func (s *serving) fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(why)
}

func (s *serving) failLocked(why error) {
	if s.why == nil {
		s.why = why
		close(s.failed)
		s.proc.kill()
	}
}

// read takes answers in.
func (s *serving) read() {
	for {
		line, err := s.proc.line()
		if err == nil {
			err = s.handleAnswer(line)
		} else if !errors.Is(err, ErrInvalidAnswer) {
			err = fmt.Errorf("%w: %s", errExited, s.proc.stop(patience))
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// hear takes an answer in.
func (s *serving) handleAnswer(line []byte) error {
	id, a, err := parseReply(line)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	s.mu.Lock()
	c, now := s.inFlight[id], time.Now()
	s.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%w: nothing with the id %d was asked, or it was answered: %s", ErrInvalidAnswer, id, quoted(line))
	}
	err = a.checkPoint(c.question.Point)
	if err == nil && s.pool.cfg.Check != nil {
		err = s.pool.cfg.Check(c.question.Point, &a)
	}
	if err != nil {
		return fmt.Errorf("%w: %w: %s", ErrInvalidAnswer, err, quoted(line))
	}
	s.mu.Lock()
	delete(s.inFlight, id)
	s.answered++
	took := now.Sub(s.last)
	s.last = now
	if s.answerTime == 0 {
		s.answerTime = max(took, 1)
	} else {
		s.answerTime = max((7*s.answerTime+took)/8, 1)
	}
	s.mu.Unlock()
	s.pool.answer(c, a, nil)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}
