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

// A fileSet reports which files are uploaded.
type fileSet interface{ Has(name string) bool }

// places returns access to the storage locations of this node and of others.
func (l *nodeRun) places() meshnode.Places {
	p := meshnode.Places{Timeout: l.PlaceWait, Items: readItems, Valid: exchange.IsValid}
	if l.ReadManifest != nil {
		p.ReadPlace = func(ctx context.Context, place string) (func(string) bool, error) {
			there, err := l.ReadManifest(ctx, place)
			if err != nil {
				return nil, err
			}
			// Lists are uploaded when a node ends, so an existing list may lack later lines.
			return func(file string) bool {
				_, is := there.Get(file)
				return is && strings.HasPrefix(file, warcDir+"/")
			}, nil
		}
	}
	if has, is := l.uploader.(fileSet); is && l.ReadManifest != nil {
		p.Own, p.Pending = l.uploader.URL(), func() []string { return l.pendingWARCs(has) }
		// as in ReadPlace
		p.Has = func(file string) bool { return strings.HasPrefix(file, warcDir+"/") && has.Has(file) }
	}
	return p
}

const warcDir = "warc"

// pendingWARCs returns the final names of WARC files that are not uploaded, including the open one.
func (l *nodeRun) pendingWARCs(has fileSet) (names []string) {
	all, _ := l.disk.List(l.warcs) // empty if the folder does not exist yet
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

// atRisk registers pages whose records are only on this disk.
func (l *nodeRun) atRisk(ctx context.Context, pages []crawl.AtRisk) error {
	all := make([]meshnode.AtRisk, len(pages))
	for i, p := range pages {
		all[i] = meshnode.AtRisk{Item: p.Item, File: p.File, Refers: p.Refers}
	}
	return l.mesh.AtRisk(ctx, all)
}

// Refetched returns the number of pages of lost nodes that this process has accepted for another fetch.
func (n *Node) Refetched() int64 {
	if c := n.crawl.Load(); c != nil {
		return c.Engine.Dispatches.Refetched()
	}
	return n.refetched.Load()
}
