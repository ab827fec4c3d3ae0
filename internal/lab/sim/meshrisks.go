package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// Where there is a place, a node's records go to files of a few pages. A closed one comes into the place some time
// later.

const filePages = 8

// A recordLocation is where a record lies.
type recordLocation struct {
	by   *meshNode
	file string
}

// meshFiles are the record files on a disk, and lists of pages at risk: its node's and those of others.
type meshFiles struct {
	all   []string // the last one grows
	pages int      // that it has
	risks map[strategy.Node]map[string][]byte
}

func (f *meshFiles) lengths() map[strategy.Node]map[string]int64 {
	all := map[strategy.Node]map[string]int64{}
	for n, lists := range f.risks {
		all[n] = map[string]int64{}
		for name, data := range lists {
			all[n][name] = int64(len(data))
		}
	}
	return all
}

func (f *meshFiles) append(n strategy.Node, file string, data []byte) {
	if f.risks[n] == nil {
		f.risks[n] = map[string][]byte{}
	}
	f.risks[n][file] = append(f.risks[n][file], data...)
}

func (p *meshProcess) storeRecord(u url) {
	if !p.w.cfg.Storage {
		return
	}
	f := &p.n.disk.files
	if f.pages == 0 || f.pages >= filePages {
		f.all, f.pages = append(f.all, fmt.Sprintf("%d", len(f.all))), 0
		if len(f.all) > 1 {
			p.uploadFile(f.all[len(f.all)-2])
		}
	}
	f.pages++
	p.w.records[u] = append(p.w.records[u], recordLocation{p.n, f.all[len(f.all)-1]})
}

// uploadPending brings to the place what an earlier process has not.
func (p *meshProcess) uploadPending() {
	f := &p.n.disk.files
	f.pages = 0
	for _, file := range f.all {
		if !p.n.uploaded[file] {
			p.uploadFile(file)
		}
	}
}

func (p *meshProcess) uploadFile(file string) {
	p.after(p.w.k.uniform(time.Second, 20*time.Second), func() {
		p.n.uploaded[file] = true
		p.after(p.w.k.uniform(0, time.Second), func() {
			delete(p.n.disk.files.risks[p.n.name], file)
			p.deliver(mesh.Uploaded{Names: []string{file}})
		})
	})
}

// finishSafely has others know of pages at risk, and finishes them then.
func (p *meshProcess) finishSafely(m *pendingFinish) {
	if !p.w.cfg.Storage || len(m.pages) == 0 {
		p.finish(m)
		return
	}
	lists := map[string][]byte{}
	for _, u := range m.pages {
		k := meshKey{u, 0}
		if e := p.n.disk.engine[u.host()]; e != nil {
			k.losses = e.losses[u&63]
		}
		for _, r := range p.w.records[u] {
			if r.by == p.n && !p.n.uploaded[r.file] {
				lists[r.file] = k.append(lists[r.file])
			}
		}
	}
	p.addRisks(lists, func() { p.finish(m) })
}

// addFetchedAgain is told of a page that is dispatched, and was fetched before.
func (p *meshProcess) addFetchedAgain(k meshKey) {
	if !p.w.cfg.Storage {
		return
	}
	lists := map[string][]byte{}
	for _, file := range p.n.disk.files.all {
		if !p.n.uploaded[file] {
			lists[file] = k.append(nil)
		}
	}
	p.addRisks(lists, func() {})
}

func (p *meshProcess) addRisks(lists map[string][]byte, then func()) {
	p.afterDisk(func() {
		p.lastRiskID++
		e := mesh.AtRisk{ID: p.lastRiskID}
		f := &p.n.disk.files
		for _, file := range slices.Sorted(maps.Keys(lists)) {
			f.append(p.n.name, file, lists[file])
			e.Lists = append(e.Lists, mesh.RiskList{Name: file, Size: int64(len(f.risks[p.n.name][file]))})
		}
		p.onSafe[p.lastRiskID] = then
		p.deliver(e)
	})
}

func (p *meshProcess) handleRisk(a mesh.Action) {
	f := &p.n.disk.files
	switch a := a.(type) {
	case mesh.ReadRisk:
		p.afterDisk(func() {
			data := f.risks[a.Node][a.Name]
			from := min(int(a.From), len(data))
			p.deliver(mesh.RiskRead{ID: a.ID, Data: slices.Clone(data[from:min(from+a.Most, len(data))])})
		})
	case mesh.WriteRisk:
		p.afterDisk(func() {
			f.append(a.Node, a.Name, a.Data)
			p.deliver(mesh.RiskWritten{ID: a.ID})
		})
	case mesh.DropRisk:
		p.afterDisk(func() {
			if a.Name == "" {
				delete(f.risks, a.Node)
			} else {
				delete(f.risks[a.Node], a.Name)
			}
		})
	case mesh.Safe:
		then := p.onSafe[a.ID]
		delete(p.onSafe, a.ID)
		then()
	case mesh.Lost:
		p.afterDisk(func() { p.refetch(a.Node) })
	}
}

// refetch offers what a lost node had fetched, and what is not in its place.
func (p *meshProcess) refetch(lost strategy.Node) {
	lists := p.n.disk.files.risks[lost]
	for _, file := range slices.Sorted(maps.Keys(lists)) {
		if p.w.named[lost].uploaded[file] {
			continue
		}
		for data := lists[file]; len(data) >= keySize; data = data[keySize:] {
			k := readKey(data)
			k.losses++
			p.put(k)
			p.w.figures.Refetches++
		}
	}
	p.deliver(mesh.Refetched{Node: lost})
	p.pump()
}

func (w *meshWorld) checkRecords() {
	if !w.cfg.Storage {
		return
	}
	for h, reach := range w.web.reachable {
		for ; reach != 0; reach &= reach - 1 {
			u := at(int32(h), lowest(reach))
			is := func(r recordLocation) bool { return r.by.disk != nil || r.by.uploaded[r.file] }
			if slices.ContainsFunc(w.records[u], is) {
				continue
			}
			if w.figures.WithoutRecord++; w.figures.WithoutRecord == 1 {
				w.violate("no record of %s is left: %s had it; %s", w.web.name(u), w.describeRecords(u), w.describePage(u))
			}
		}
	}
}

func (w *meshWorld) describeRecords(u url) (s string) {
	for _, r := range w.records[u] {
		s += fmt.Sprintf(" %s in %s", r.by.name, r.file)
	}
	return s
}
