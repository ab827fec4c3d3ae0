package synthweb

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A Request is one request as the server saw it.
type Request struct {
	Host   string
	Target string // path and query
	Client netip.Addr
	At     time.Time // its arrival
	End    time.Time // when the last bytes of its answer were about to go out, or the client was found to be gone
	Status int       // of the answer, 0 if there was none
	Whole  bool      // the answer went out to its end
}

// A requestLog is what Server.Log gives.
type requestLog struct {
	mu  sync.Mutex // guards all
	all []Request
}

// log notes a request that is over.
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

// Log is all requests that are over since the server started, by their arrival, if its options say so. What a client
// has read the answer of may come a moment later.
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

// A Log is requests by their arrival.
type Log []Request

// A Meeting is a request that came to a host while another was under way there, or sooner after it than it should.
type Overlap struct {
	Before, Request Request
	Gap             time.Duration // from the end of the one to the arrival of the other; 0: they overlap
}

// Overlaps are the requests that came less than gap after the end of another to the same host, each with the one that
// ended last before it. Where they overlap or touch, Gap is 0.
func (l Log) Overlaps(gap time.Duration) (found []Overlap) {
	last := map[string]Request{} // by host, the one of those that came that ends last
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

// Repeats are the requests answered whole by status 200 after the same had been before.
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

// Stall is the longest time between two instants in which no request came, and when it began. The instants count as
// requests.
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
