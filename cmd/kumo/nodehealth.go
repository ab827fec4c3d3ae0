package main

import (
	"context"
	"errors"
	"time"

	"kumo/internal/app/session"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/stats"
	"kumo/internal/view/telemetry"
	"kumo/internal/view/web"
)

// serveMetrics serves metrics and health checks at an address, also while the node connects to its cluster. It returns
// a function that stops it.
func (n *nodeRunner) serveMetrics(ctx context.Context, show *console, exporter *telemetry.Exporter) (stop func() error,
	err error) {
	l, err := listenMetrics(n.o.Metrics)
	if err != nil {
		return nil, err
	}
	src := metricsOf(n.session)
	src.Name, src.Alive, src.Ready = n.crawl, n.checkAlive, n.checkReady
	if n.o.place != "" {
		src.Uploads = currentOr(n.session, uploadsOf)
		src.States = func() (s stats.UploadedState) {
			if has := src.Uploads().State; has != nil {
				s = *has
			}
			return s
		}
	}
	src.Sinks = currentOr(n.session, sinksOf)
	src.Again = func() (pages int64) {
		if one := n.open.Load(); one != nil {
			pages = refetched(one.Node)
		}
		return pages
	}
	if !cluster.IsMesh(n.place) {
		src.Lease, src.Placement = n.lease, n.placement
	}
	if len(n.filters) > 0 {
		src.Filters = n.filters.counts
	}
	isOpen := func() bool { return n.session() != nil }
	if err := exporter.ExportMetrics(ctx, web.RegistryWhile(src, isOpen)); err != nil || l == nil {
		return func() error { return nil }, err
	}
	show.metrics(l.Addr())
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- web.Serve(serving, l, src) }()
	return func() error { end(); return <-served }, nil
}

// session returns the node's part of the crawl; nil before it takes part.
func (n *nodeRunner) session() *session.Session {
	if one := n.open.Load(); one != nil {
		return one.Session()
	}
	return nil
}

// placement returns how the node's hosts were assigned; nil while it takes no part.
func (n *nodeRunner) placement() *stats.Placement {
	if one := n.open.Load(); one != nil {
		if has, is := one.Node.(interface{ Placement() *stats.Placement }); is {
			return has.Placement()
		}
	}
	return nil
}

func (n *nodeRunner) lease() (l web.Lease) {
	if one := n.open.Load(); one != nil {
		if has, is := one.Node.(interface {
			Lease() (left time.Duration, expired, declaredDead int64)
		}); is {
			l.Left, l.Expired, l.Lost = has.Lease()
		}
	}
	return l
}

func (n *nodeRunner) checkAlive() error {
	if one := n.open.Load(); one != nil {
		return one.CheckAlive()
	}
	return nil
}

func (n *nodeRunner) checkReady() error {
	if one := n.open.Load(); one != nil {
		return one.CheckReady()
	}
	return errors.New("the node has not reached its cluster yet")
}
