package quorum

import (
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A sender guards the chunks of one node's hosts on their way to other nodes: it numbers each receiver's chunks and
// sends them until they are acknowledged.
//
// Its messages are chunkMsg, and ackMsg in return. Invariants: at most Timing.Window chunks are read and not yet
// acknowledged, over all receivers. The last chunk to each receiver follows all others. If a receiver restarts and
// lacks acknowledged chunks, all is read and sent again as another attempt.
type sender struct {
	env     *env
	from    strategy.Node
	epoch   uint64
	attempt uint64
	flows   map[strategy.Node]*flow // by receiver
	reads   int                     // chunks requested and not yet read
	ended   bool                    // all chunks are read
	sent    bool                    // there was at least one chunk with hosts
}

// A flow is the chunks to one receiver.
type flow struct {
	queue    []chunkMsg // not acknowledged
	next     uint64     // number of the next chunk
	taken    uint64     // chunks before this one are journaled by the receiver's process
	process  uint64
	complete bool      // the receiver has acknowledged the last chunk
	at       time.Time // when the queue is sent again
	wait     time.Duration
}

// resend sends chunks again that were not acknowledged in time.
func (s *sender) resend() {
	retry := s.env.timing.Retry
	for _, n := range sortedNodes(s.flows) {
		f := s.flows[n]
		if len(f.queue) == 0 || f.at.After(s.env.now) {
			continue
		}
		f.wait = min(2*max(f.wait, retry/2), 8*retry)
		f.at = s.env.now.Add(f.wait)
		for _, c := range f.queue[:min(len(f.queue), 4)] {
			s.env.do(member.Send{To: n, Data: c.encode()})
		}
	}
}

// request returns how many chunks the caller must request now, as far as the window allows.
func (s *sender) request() int {
	if s.ended {
		return 0
	}
	open := s.reads
	for _, f := range s.flows {
		open += len(f.queue)
	}
	n := max(0, s.env.timing.Window-open)
	s.reads += n
	return n
}

func (s *sender) chunk(to strategy.Node, data []byte) {
	s.reads--
	if to == "" {
		s.end()
		return
	}
	s.sent = true
	if s.flows[to] == nil {
		s.flows[to] = &flow{}
	}
	s.post(to, data, false)
}

// end sends the last chunk to each receiver.
func (s *sender) end() {
	s.ended = true
	for _, n := range sortedNodes(s.flows) {
		s.post(n, nil, true)
	}
}

func (s *sender) post(to strategy.Node, data []byte, last bool) {
	f := s.flows[to]
	if f.complete {
		return // with an earlier attempt
	}
	c := chunkMsg{t: member.Transfer{From: s.from, To: to, Epoch: s.epoch, Attempt: s.attempt}, seq: f.next, last: last,
		data: data}
	f.next++
	if len(f.queue) == 0 {
		f.restart(s.env)
	}
	f.queue = append(f.queue, c)
	s.env.do(member.Send{To: to, Data: c.encode()})
}

// restart restarts the timeout of the first chunk in the queue.
func (f *flow) restart(env *env) {
	f.wait = env.timing.Retry
	f.at = env.now.Add(f.wait)
}

func (s *sender) ack(from strategy.Node, a ackMsg) {
	f := s.flows[from]
	switch {
	case f == nil:
	case a.complete: // perhaps of an earlier attempt: then the chunks of this one are duplicates
		f.complete, f.queue = true, nil
	case a.t.Attempt != s.attempt || a.process < f.process:
	case a.process > f.process && a.next < f.taken:
		s.again()
	default:
		f.process = a.process
		for len(f.queue) > 0 && f.queue[0].seq < a.next {
			f.queue, f.taken = f.queue[1:], a.next
			f.restart(s.env)
		}
	}
}

// again starts another attempt: a receiver's process has restarted, and has undone the chunks that it had journaled.
func (s *sender) again() {
	s.attempt++
	s.reads, s.ended = 0, false
	for n, f := range s.flows {
		s.flows[n] = &flow{complete: f.complete}
	}
}

// isComplete reports whether all receivers have acknowledged their last chunks.
func (s *sender) isComplete() bool {
	for _, f := range s.flows {
		if !f.complete {
			return false
		}
	}
	return s.ended
}

// due returns when chunks are sent again; zero if none are waiting.
func (s *sender) due() (at time.Time) {
	for _, f := range s.flows {
		if len(f.queue) > 0 {
			at = earlier(at, f.at)
		}
	}
	return at
}
