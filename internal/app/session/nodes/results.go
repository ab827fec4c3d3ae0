package nodes

import (
	"context"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/desired"
)

// resultsInterval is the interval at which a node shares its report while it fetches pages.
const resultsInterval = 30 * time.Second

// shareResults stores this node's report in the registry from time to time, and each beat while the crawl is ending.
// Then it writes the report of all nodes to the folder.
func (m *membership) shareResults(ctx context.Context) {
	shared, pages := time.Time{}, int64(-1)
	for now := range wait.Every(ctx, m.n.Timing.Beat/2) {
		record, _, err := (node.Control{Registry: m.bus}).Record(ctx)
		ending := err == nil && (record.State == desired.Done || record.State == desired.Stopping)
		is := m.crawl.Stats.Pages()
		if !ending && (now.Sub(shared) < resultsInterval || is == pages) {
			continue
		}
		err = m.putResults(ctx, false)
		if err == nil {
			shared, pages = now, is
		}
		if err == nil && ending {
			err = m.writeResults(ctx)
		}
		if err != nil && ctx.Err() == nil {
			m.n.Log.Debug("cannot share this node's report", "err", err)
		}
	}
}

// putResults stores this node's report; left means that its URLs belong to other nodes now.
func (m *membership) putResults(ctx context.Context, left bool) error {
	r := m.crawl.CurrentReport()
	if r == nil {
		return nil
	}
	if left {
		r.WithoutState()
	}
	return node.Control{Registry: m.bus}.PutResults(ctx, m.id.Node(), *r)
}

func (m *membership) writeResults(ctx context.Context) error {
	all, _, err := node.Control{Registry: m.bus}.Results(ctx, m.job.Name)
	if err != nil {
		return err
	}
	return node.SaveResults(m.n.disk, m.job.Dir, all)
}
