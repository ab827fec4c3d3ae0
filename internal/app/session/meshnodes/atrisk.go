package meshnodes

import (
	"context"
	"strings"

	"kumo/internal/app/meshnode"
	"kumo/internal/base/item"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
)

// A holder knows which files are in the place.
type fileSet interface{ Has(name string) bool }

// places are this node's place, and those of others.
func (l *nodeRun) places() meshnode.Places {
	p := meshnode.Places{Timeout: l.PlaceWait, Items: readItems, Valid: exchange.IsValid}
	if l.ReadManifest != nil {
		p.ReadPlace = func(ctx context.Context, place string) (func(string) bool, error) {
			there, err := l.ReadManifest(ctx, place)
			if err != nil {
				return nil, err
			}
			// lines come there when a node ends: what is there says nothing of what has come since
			return func(file string) bool {
				_, is := there.Get(file)
				return is && strings.HasPrefix(file, warcDir+"/")
			}, nil
		}
	}
	if has, is := l.uploader.(fileSet); is && l.ReadManifest != nil {
		p.Own, p.Pending = l.uploader.URL(), func() []string { return l.pendingWARCs(has) }
		p.Has = func(file string) bool { return strings.HasPrefix(file, warcDir+"/") && has.Has(file) } // as There
	}
	return p
}

const warcDir = "warc"

// pendingWARCs are the WARC files that are not in the place; the one that grows, by the name that it will have.
func (l *nodeRun) pendingWARCs(has fileSet) (names []string) {
	all, _ := l.disk.List(l.warcs) // none if there is no such folder yet
	for _, name := range all {
		name = warcDir + "/" + strings.TrimSuffix(name, ".open")
		if strings.Contains(name, ".warc") && !has.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

func readItems(data []byte) (items []item.Item, err error) {
	err = exchange.Read(data, func(c entry.Candidate, _ []byte) { items = append(items, c.Item) })
	return items, err
}

// atRisk tells the node of pages whose records are on this disk alone.
func (l *nodeRun) atRisk(ctx context.Context, pages []crawl.AtRisk) error {
	all := make([]meshnode.AtRisk, len(pages))
	for i, p := range pages {
		all[i] = meshnode.AtRisk{Item: p.Item, File: p.File, Refers: p.Refers}
	}
	return l.mesh.AtRisk(ctx, all)
}

// Refetched is how many pages that lost nodes had fetched this process has taken in to be fetched again.
func (n *Node) Refetched() int64 {
	if c := n.crawl.Load(); c != nil {
		return c.Engine.Dispatches.Refetched()
	}
	return n.refetched.Load()
}
