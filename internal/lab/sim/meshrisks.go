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

// A meshPlace is where a record lies.
type meshPlace struct {
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

func (p *meshProcess) keepRecord(u url) {
	if !p.w.cfg.Place {
		return
	}
	f := &p.n.disk.files
	if f.pages == 0 || f.pages >= filePages {
		f.all, f.pages = append(f.all, fmt.Sprintf("%d", len(f.all))), 0
		if len(f.all) > 1 {
			p.bringFile(f.all[len(f.all)-2])
		}
	}
	f.pages++
	p.w.records[u] = append(p.w.records[u], meshPlace{p.n, f.all[len(f.all)-1]})
}

// bring brings to the place what an earlier process has not.
func (p *meshProcess) bring() {
	f := &p.n.disk.files
	f.pages = 0
	for _, file := range f.all {
		if !p.n.there[file] {
			p.bringFile(file)
		}
	}
}

func (p *meshProcess) bringFile(file string) {
	p.after(p.w.k.between(time.Second, 20*time.Second), func() {
		p.n.there[file] = true
		p.after(p.w.k.between(0, time.Second), func() {
			delete(p.n.disk.files.risks[p.n.name], file)
			p.tell(mesh.Uploaded{Names: []string{file}})
		})
	})
}

// secure has others know of pages at risk, and finishes them then.
func (p *meshProcess) secure(m *meshMark) {
	if !p.w.cfg.Place || len(m.pages) == 0 {
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
			if r.by == p.n && !p.n.there[r.file] {
				lists[r.file] = k.append(lists[r.file])
			}
		}
	}
	p.atRisk(lists, func() { p.finish(m) })
}

// doneBefore is told of a page that is dispatched, and was fetched before.
func (p *meshProcess) doneBefore(k meshKey) {
	if !p.w.cfg.Place {
		return
	}
	lists := map[string][]byte{}
	for _, file := range p.n.disk.files.all {
		if !p.n.there[file] {
			lists[file] = k.append(nil)
		}
	}
	p.atRisk(lists, func() {})
}

func (p *meshProcess) atRisk(lists map[string][]byte, then func()) {
	p.disked(func() {
		p.risked++
		e := mesh.AtRisk{ID: p.risked}
		f := &p.n.disk.files
		for _, file := range slices.Sorted(maps.Keys(lists)) {
			f.append(p.n.name, file, lists[file])
			e.Lists = append(e.Lists, mesh.RiskList{Name: file, Size: int64(len(f.risks[p.n.name][file]))})
		}
		p.safe[p.risked] = then
		p.tell(e)
	})
}

func (p *meshProcess) risk(a mesh.Action) {
	f := &p.n.disk.files
	switch a := a.(type) {
	case mesh.ReadRisk:
		p.disked(func() {
			data := f.risks[a.Node][a.Name]
			from := min(int(a.From), len(data))
			p.tell(mesh.RiskRead{ID: a.ID, Data: slices.Clone(data[from:min(from+a.Most, len(data))])})
		})
	case mesh.WriteRisk:
		p.disked(func() {
			f.append(a.Node, a.Name, a.Data)
			p.tell(mesh.RiskWritten{ID: a.ID})
		})
	case mesh.DropRisk:
		p.disked(func() {
			if a.Name == "" {
				delete(f.risks, a.Node)
			} else {
				delete(f.risks[a.Node], a.Name)
			}
		})
	case mesh.Safe:
		then := p.safe[a.ID]
		delete(p.safe, a.ID)
		then()
	case mesh.Lost:
		p.disked(func() { p.refetch(a.Node) })
	}
}

// refetch offers what a lost node had fetched, and what is not in its place.
func (p *meshProcess) refetch(lost strategy.Node) {
	lists := p.n.disk.files.risks[lost]
	for _, file := range slices.Sorted(maps.Keys(lists)) {
		if p.w.named[lost].there[file] {
			continue
		}
		for data := lists[file]; len(data) >= keySize; data = data[keySize:] {
			k := readKey(data)
			k.losses++
			p.put(k)
			p.w.figures.Again++
		}
	}
	p.tell(mesh.Refetched{Node: lost})
	p.pump()
}

func (w *meshWorld) judgeRecords() {
	if !w.cfg.Place {
		return
	}
	for h, reach := range w.web.reach {
		for ; reach != 0; reach &= reach - 1 {
			u := at(int32(h), lowest(reach))
			is := func(r meshPlace) bool { return r.by.disk != nil || r.by.there[r.file] }
			if slices.ContainsFunc(w.records[u], is) {
				continue
			}
			if w.figures.Bare++; w.figures.Bare == 1 {
				w.violate("no record of %s is left: %s had it; %s", w.web.name(u), w.hadRecords(u), w.whatIsKnown(u))
			}
		}
	}
}

func (w *meshWorld) hadRecords(u url) (s string) {
	for _, r := range w.records[u] {
		s += fmt.Sprintf(" %s in %s", r.by.name, r.file)
	}
	return s
}
