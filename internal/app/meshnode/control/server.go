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

// A Node is the node of a server. Its methods are called concurrently.
type Node interface {
	Crawl() (r desired.Record, version uint64)
	// Change creates a new version of the newest record. It returns when it is durable here.
	Change(ctx context.Context, f func(r *desired.Record, version uint64) error) error
	// AddSeeds adds URLs, one per line. It returns when they are durable here.
	AddSeeds(ctx context.Context, lines string) error
	SeedChunks() int // number of known lists
	Gather(ctx context.Context) (mesh.Tally, error)
	// CountKnown accepts up to MaxURLs URLs, and returns within a few seconds.
	CountKnown(ctx context.Context, urls []string) (Known, error)
	// QueryAll sends a query to all nodes. It returns within a few seconds.
	QueryAll(ctx context.Context, query json.RawMessage) (Answers, error)
	// Results returns one report of all nodes on the crawl, as JSON, and how many parts of the ID space have not answered.
	Results(ctx context.Context) (data []byte, missing int, err error)
	Locate(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error)
}

const (
	maxRequests    = 32               // concurrent requests; clients repeat rejected ones
	requestTimeout = 30 * time.Second // after which the client has given up
	sumsTTL        = 2 * time.Second  // for which gathered sums are reused
)

// A Server answers requests.
type Server struct {
	node Node
	self strategy.Node
	send func(to strategy.Node, data []byte)
	log  *slog.Logger

	mu         sync.Mutex // guards below
	active     map[requestKey]bool
	sums       *Sums
	gatheredAt time.Time     // time of sums
	gathering  chan struct{} // closed when new sums arrive; nil: no gathering is in progress
}

type requestKey struct {
	from strategy.Node
	id   uint64
}

// NewServer creates a server.
func NewServer(self strategy.Node, n Node, send func(to strategy.Node, data []byte), log *slog.Logger) *Server {
	return &Server{node: n, self: self, send: send, log: log, active: map[requestKey]bool{}}
}

// Handle answers a request, a message without its first byte. It returns when the request is complete.
func (s *Server) Handle(ctx context.Context, from strategy.Node, data []byte) {
	var q Request
	if err := json.Unmarshal(data, &q); err != nil {
		s.log.Warn("cannot read a request", "from", from, "err", err)
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

// begin reports whether a request should be processed. It returns false for one in progress, or if there are too many.
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
			return fmt.Errorf("the request has %d URLs: the maximum is %d", len(q.URLs), MaxURLs)
		}
		var err error
		a.Known, err = s.node.CountKnown(ctx, q.URLs)
		return err
	case QueryAll:
		answers, err := s.node.QueryAll(ctx, q.Query)
		a.Answers = &answers
		return err
	case Results:
		data, missing, err := s.node.Results(ctx)
		a.Results, a.Missing = data, missing
		return err
	case Locate:
		return s.locate(ctx, q.Hosts, a)
	}
	return fmt.Errorf("%q: %w: use the kumo version of the nodes", q.Do, errUnknownVerb)
}

func (s *Server) locate(ctx context.Context, hosts []string, a *Response) error {
	if len(hosts) > MaxHosts {
		return fmt.Errorf("the request has %d hosts: the maximum is %d", len(hosts), MaxHosts)
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

// currentSums gathers the reports of all nodes. Concurrent requests share one gathering.
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

var errGatherTimeout = errors.New("gather the nodes' reports")

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
