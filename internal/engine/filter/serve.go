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

// A serving is the exchange with one process.
type serving struct {
	pool   *Pool
	proc   *process
	wake   chan struct{} // signaled when a question was answered
	failed chan struct{} // closed when the process has failed

	mu         sync.Mutex
	inFlight   map[uint64]*call // questions at the process, by id
	oldest     uint64           // no smaller id is in inFlight
	next       uint64
	answered   int
	last       time.Time     // time of the last answer, or of a question to the idle process
	answerTime time.Duration // average time of an answer; 0: unknown
	why        error         // why the process has failed
	watch      *time.Timer
}

// serve sends questions to a process until it fails, or, with a nil error, until the pool is closed. It returns the
// unanswered questions.
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
	// so that a process that does not read cannot delay the end
	halt := context.AfterFunc(p.ctx, func() { proc.stop(patience) })
	defer halt()
	read := make(chan struct{})
	go func() { defer close(read); s.read() }()
	s.write()
	s.mu.Lock()
	s.watch.Stop()
	err = s.why
	s.mu.Unlock()
	if p.ctx.Err() != nil {
		err = nil           // an error after the end is expected
		proc.stop(patience) // before waiting for its remaining output
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

// write sends questions to the process at the rate at which it answers.
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
			buf = s.appendQueued(buf[:0], &s.pool.retries, 1)
		case <-fresh:
			buf = buf[:0]
			if again != nil { // an idle process retries failed questions first, so that they soon have an answer or the default
				buf = s.appendQueued(buf, &s.pool.retries, 1)
			}
			alone := len(buf) > 0
			if !alone {
				buf = s.appendQueued(buf, &s.pool.fresh, s.free())
			}
			if (alone || len(buf) == 0) && !s.pool.fresh.empty() {
				s.pool.fresh.signal() // for another process, or this one later: it is busy, or has become slower
			}
		}
		if len(buf) == 0 {
			continue
		}
		if s.proc.write(buf) != nil { // it has ended, as read will find, or reads no more and will time out
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
	keptRoom = 256 << 10 // bytes of the reused buffer
	atOnce   = 64 << 10  // bytes of questions in one write
)

// sources returns the queues from which the process may take its next question.
func (s *serving) sources() (fresh, again <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inFlight {
		if c.tried { // a retried question is sent alone
			return nil, nil
		}
		break
	}
	if len(s.inFlight) == 0 {
		again = s.pool.retries.ready
	}
	// an idle process takes any question; a busy one takes no new questions while retries wait, so that it becomes idle
	// and can take one
	if len(s.inFlight) == 0 || len(s.inFlight) < s.capacity() && s.pool.retries.empty() {
		fresh = s.pool.fresh.ready
	}
	return fresh, again
}

// capacity returns how many questions may be at the process.
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

// take takes up to most calls, and appends their lines to buf.
func (s *serving) appendQueued(buf []byte, q *queue, most int) []byte {
	for range most {
		c := q.dequeue()
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

// register adds a call to inFlight and returns its id.
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

// expire is called when the oldest question may have timed out.
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

// Reasons for the failure of a process.
var (
	errTimeout = errors.New("no answer")
	errExited  = errors.New("it ended")

	errUnreliable = errors.New("it fails repeatedly")

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

// read reads answers until the process fails.
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

// handleAnswer completes the call of an answer.
func (s *serving) handleAnswer(line []byte) error {
	id, a, err := parseReply(line)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	s.mu.Lock()
	c, now := s.inFlight[id], time.Now()
	s.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%w: no question with the id %d, or it was answered before: %s", ErrInvalidAnswer, id, quoted(line))
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
