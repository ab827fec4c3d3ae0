package synthweb

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A Request is a request that the server received.
type Request struct {
	Host   string
	Target string // path and query
	Client netip.Addr
	At     time.Time // arrival
	End    time.Time // when the last bytes of its answer were about to be sent, or the client was found to have left
	Status int       // status of the answer; 0 if there was none
	Whole  bool      // the complete answer was sent
}

// A requestLog stores the requests for Server.Log.
type requestLog struct {
	mu  sync.Mutex // guards all
	all []Request
}

// log records a finished request.
func (c *conn) log(v *visit, status int, whole bool, end time.Time) {
	l := c.s.log
	if l == nil {
		return
	}
	r := Request{Host: c.s.web.Host(int(v.ref.Host)), Target: string(v.target), At: v.at, End: end, Status: status,
		Whole: whole}
	if addr, ok := c.net.RemoteAddr().(*net.TCPAddr); ok {
		r.Client = addr.AddrPort().Addr().Unmap()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

// Log returns all finished requests since the server started, by arrival, if its options enable that. A request may be
// added shortly after the client has read its answer.
func (s *Server) Log() Log {
	if s.log == nil {
		return nil
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	all := slices.Clone(s.log.all)
	slices.SortStableFunc(all, func(a, b Request) int { return a.At.Compare(b.At) })
	return all
}

// A Log is a list of requests, ordered by arrival.
type Log []Request

// An Overlap is a request that arrived at a host while another was in progress there, or too soon after it.
type Overlap struct {
	Before, Request Request
	Gap             time.Duration // from the end of the first to the arrival of the second; 0: they overlap
}

// Overlaps returns the requests that arrived less than gap after the end of another to the same host, each with the
// previous request that ended last. If they overlap or touch, Gap is 0.
func (l Log) Overlaps(gap time.Duration) (found []Overlap) {
	last := map[string]Request{} // by host, the request so far that ends last
	for _, r := range l {
		before, ok := last[r.Host]
		if ok && r.At.Sub(before.End) < gap {
			found = append(found, Overlap{before, r, max(0, r.At.Sub(before.End))})
		}
		if !ok || r.End.After(before.End) {
			last[r.Host] = r
		}
	}
	return found
}

// Repeats returns the requests answered completely with status 200 after an earlier such answer.
func (l Log) Repeats() (found Log) {
	type page struct{ host, target string }
	given := map[page]bool{}
	byEnd := slices.Clone(l)
	slices.SortStableFunc(byEnd, func(a, b Request) int { return a.End.Compare(b.End) })
	for _, r := range byEnd {
		if !r.Whole || r.Status != 200 || r.Target == "/robots.txt" {
			continue
		}
		p := page{r.Host, r.Target}
		if given[p] {
			found = append(found, r)
		}
		given[p] = true
	}
	return found
}

// Stall returns the longest time between two instants without a request, and its start. The instants count as requests.
func (l Log) Stall(from, to time.Time) (began time.Time, longest time.Duration) {
	last := from
	look := func(at time.Time) {
		if d := at.Sub(last); d > longest {
			began, longest = last, d
		}
		last = at
	}
	for _, r := range l {
		if r.At.After(from) && r.At.Before(to) {
			look(r.At)
		}
	}
	look(to)
	return began, longest
}
