package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	"kumo/internal/inspect"
)

// A crawlList is the crawls that are shown.
type crawlList struct {
	Crawls []crawlEntry `json:"crawls"`
}

type crawlEntry struct {
	Name    string         `json:"name"`              // in URLs
	Folder  string         `json:"folder"`            // "": only its cluster is shown
	Cluster bool           `json:"cluster,omitempty"` // it has several nodes, and all of them are shown, too
	State   *inspect.State `json:"state,omitempty"`   // missing: why it cannot be said is in error
	Crawl   string         `json:"crawl,omitempty"`   // as its user has called it
	Ended   string         `json:"ended,omitempty"`
	Started time.Time      `json:"started,omitzero"`
	Pages   int64          `json:"pages"`
	Bytes   int64          `json:"bytes"`
	Failed  int64          `json:"failed"`
	Waiting int            `json:"urls_waiting"`
	Error   string         `json:"error,omitempty"`
}

func (s *Server) giveCrawls(r *http.Request) (any, error) {
	return crawlList{s.entries(r.Context())}, nil
}

// entries are all crawls, asked a few at a time.
func (s *Server) entries(ctx context.Context) []crawlEntry {
	all := make([]crawlEntry, len(s.crawls))
	var wait sync.WaitGroup
	places := make(chan struct{}, 4)
	for i, c := range s.crawls {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			e := crawlEntry{Name: c.name, Folder: c.dir, Cluster: c.cluster != nil}
			if c.dir == "" {
				e.ofCluster(c.cluster.lookSoon(ctx))
			} else if o, err := soon(ctx, c.queue, listPatience, c.overview); err != nil {
				e.Error = problemOf(err).Error()
			} else {
				e.State, e.Crawl, e.Ended, e.Started = &o.State, o.Crawl, o.Ended, o.Started
				e.Pages, e.Bytes, e.Failed, e.Waiting = o.Pages, o.Bytes, o.Failed, o.Waiting
			}
			all[i] = e
		})
	}
	wait.Wait()
	return all
}

// ofCluster fills in what all nodes say.
func (e *crawlEntry) ofCluster(x *clusterLook, err error) {
	if err != nil {
		e.Error = problemOf(err).Error()
		return
	}
	e.State, e.Crawl, e.Started = new(inspect.State(x.State)), x.Crawl, x.Since
	e.Pages, e.Waiting = x.Totals.Pages, x.Totals.Waiting
}

func (s *Server) giveOverview(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	return c.overview(r.Context())
}

func (s *Server) giveCurves(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	return c.curves(r.Context())
}
