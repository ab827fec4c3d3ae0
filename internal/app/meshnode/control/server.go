package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// A Node is what a server answers for. Its methods may be called by many goroutines at once.
type Node interface {
	Crawl() (r desired.Record, version uint64)
	// Change makes a new version of the record, of the newest there is. It returns when that is durable here.
	Change(ctx context.Context, f func(r *desired.Record, version uint64) error) error
	// AddSeeds adds URLs, a line each. It returns when they are durable here.
	AddSeeds(ctx context.Context, lines string) error
	SeedChunks() int // that are known
	Gather(ctx context.Context) (mesh.Tally, error)
	// CountKnown is asked of MaxURLs URLs at most, and answers within a few seconds.
	CountKnown(ctx context.Context, urls []string) (Known, error)
	// CountBlocked answers within a few seconds.
	CountBlocked(ctx context.Context, rules []string) (Counts, error)
	Locate(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error)
}

const (
	maxRequests    = 32               // questions at once; who asks more asks again
	requestTimeout = 30 * time.Second // after which nobody waits for an answer any more
	sumsTTL        = 2 * time.Second  // that what was gathered is told again
)

// A Server answers questions.
type Server struct {
	node Node
	self strategy.Node
	send func(to strategy.Node, data []byte)
	log  *slog.Logger

	mu         sync.Mutex // guards below
	active     map[requestKey]bool
	sums       *Sums
	gatheredAt time.Time     // when sums were gathered
	gathering  chan struct{} // closed when new ones are; nil: nobody gathers
}

type requestKey struct {
	from strategy.Node
	id   uint64
}

// NewServer makes a server.
func NewServer(self strategy.Node, n Node, send func(to strategy.Node, data []byte), log *slog.Logger) *Server {
	return &Server{node: n, self: self, send: send, log: log, active: map[requestKey]bool{}}
}

// Handle answers a question, a message without its first byte. It takes as long as that takes.
func (s *Server) Handle(ctx context.Context, from strategy.Node, data []byte) {
	var q Request
	if err := json.Unmarshal(data, &q); err != nil {
		s.log.Warn("a question that cannot be read", "from", from, "err", err)
		return
	}
	key := requestKey{from, q.ID}
	if !s.begin(key) {
		return
	}
	defer s.end(key)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a := Response{ID: q.ID}
	if err := s.do(ctx, &q, &a); err != nil {
		a.Error, a.Fault = err.Error(), faultOf(err)
	}
	a.Record, a.Version = s.node.Crawl()
	reply, err := frame(KindReply, &a)
	if err != nil || ctx.Err() != nil {
		return
	}
	s.send(from, reply)
}

// begin reports whether a question is to be answered: it is not while it is, nor where too many are.
func (s *Server) begin(key requestKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[key] || len(s.active) >= maxRequests {
		return false
	}
	s.active[key] = true
	return true
}

func (s *Server) end(key requestKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, key)
}

func (s *Server) do(ctx context.Context, q *Request, a *Response) error {
	switch q.Do {
	case Read:
		return nil
	case Inspect:
		var err error
		a.Sums, err = s.currentSums(ctx)
		return err
	case Start:
		return s.node.Change(ctx, func(r *desired.Record, _ uint64) error {
			r.Seeds = max(r.Seeds, uint64(s.node.SeedChunks()))
			if err := r.Start(q.Settings, q.Seeded); err != nil {
				return err
			}
			r.AddChange(q.By, "start")
			return nil
		})
	case Tune:
		return s.node.Change(ctx, func(r *desired.Record, version uint64) error {
			if version != q.Version {
				return ErrStale
			}
			r.AddChange(q.By, desired.DescribeSettings(q.Settings))
			return r.ChangeSettings(q.Settings)
		})
	case Set:
		return s.node.Change(ctx, func(r *desired.Record, _ uint64) error {
			if err := r.Set(q.State); err != nil {
				return err
			}
			r.AddChange(q.By, q.State.Verb())
			return nil
		})
	case Add:
		r, _ := s.node.Crawl()
		if err := r.CheckAdd(); err != nil && !q.Seeded {
			return err
		}
		if err := s.node.AddSeeds(ctx, q.Seeds); err != nil || q.Seeded {
			return err
		}
		return s.node.Change(ctx, func(r *desired.Record, _ uint64) error {
			r.AddChange(q.By, desired.DescribeAdded(1+strings.Count(q.Seeds, "\n")))
			return nil
		})
	case CountKnown:
		if len(q.URLs) > MaxURLs {
			return fmt.Errorf("%d URLs are asked about: %d at most are answered at once", len(q.URLs), MaxURLs)
		}
		var err error
		a.Known, err = s.node.CountKnown(ctx, q.URLs)
		return err
	case CountBlocked:
		c, err := s.node.CountBlocked(ctx, q.Rules)
		a.Counts = &c
		return err
	case Locate:
		return s.locate(ctx, q.Hosts, a)
	}
	return fmt.Errorf("%q: %w: ask with the kumo that the nodes have", q.Do, errUnknownVerb)
}

func (s *Server) locate(ctx context.Context, hosts []string, a *Response) error {
	if len(hosts) > MaxHosts {
		return fmt.Errorf("%d hosts are asked for: %d at most are answered at once", len(hosts), MaxHosts)
	}
	for _, host := range hosts {
		target, backups, err := s.node.Locate(ctx, host)
		if err != nil {
			return err
		}
		a.Locations = append(a.Locations, Location{host, target, backups})
	}
	return nil
}

// currentSums gathers what all nodes say, for all who ask at the same time.
func (s *Server) currentSums(ctx context.Context) (*Sums, error) {
	for {
		s.mu.Lock()
		if s.sums != nil && time.Since(s.gatheredAt) < sumsTTL {
			sums := *s.sums
			sums.Age = time.Since(s.gatheredAt)
			s.mu.Unlock()
			return &sums, nil
		}
		coming := s.gathering
		if coming == nil {
			s.gathering = make(chan struct{})
		}
		s.mu.Unlock()
		if coming == nil {
			if err := s.gather(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-coming:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errGatherTimeout = errors.New("what the nodes say of themselves was not gathered in time")

func (s *Server) gather(ctx context.Context) error {
	begun := time.Now()
	t, err := s.node.Gather(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gathering)
	s.gathering = nil
	if err != nil {
		return fmt.Errorf("%w: %w", errGatherTimeout, err)
	}
	s.gatheredAt = time.Now()
	s.sums = &Sums{Nodes: t.Nodes, Missing: t.Missing, Idle: t.Idle, Figures: t.Figures, DepartedNodes: t.Departed,
		DepartedPages: t.DepartedPages, Reports: t.Reports, By: s.self, Took: s.gatheredAt.Sub(begun)}
	return nil
}
