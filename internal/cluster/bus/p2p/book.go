package p2p

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"kumo/internal/base/vfs"
	"kumo/internal/cluster/strategy"
)

const (
	bookFile  = "peers.json"
	maxSaved  = 256      // nodes in the file
	maxBook   = 16 << 20 // bytes of the file
	firstSave = 10 * time.Second
	eachSave  = time.Minute
)

// A book has addresses of nodes: those that others have told (Learn), and those of nodes that were connected, of which
// the last go into a file, so that a node that comes back finds others.
type book struct {
	name       string // of the file; "": there is none
	maxEntries int

	mu      sync.Mutex // guards what follows
	entries map[peer.ID]*bookEntry
	clock   uint64 // counts up with each use of a page
}

type bookEntry struct {
	node      strategy.Node
	addrs     []ma.Multiaddr
	connected bool   // it was connected once
	used      uint64 // when it was last put or asked for
}

type savedEntry struct {
	Node  strategy.Node `json:"node"`
	Addrs []string      `json:"addrs"`
}

// openBook reads the file; one that is damaged is as none.
func openBook(dir string, most int) (*book, error) {
	b := &book{maxEntries: most, entries: map[peer.ID]*bookEntry{}}
	if dir == "" {
		return b, nil
	}
	b.name = filepath.Join(dir, bookFile)
	f, err := vfs.OS.Open(b.name)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the addresses of other nodes: %w", err)
	}
	defer f.Close()
	var saved []savedEntry
	if json.NewDecoder(io.LimitReader(f, maxBook)).Decode(&saved) != nil {
		return b, nil
	}
	for _, s := range slices.Backward(saved[:min(len(saved), maxSaved)]) {
		if id, err := idOf(s.Node); err == nil {
			b.put(s.Node, id, parsed(s.Addrs), true)
		}
	}
	return b, nil
}

func parsed(texts []string) (all []ma.Multiaddr) {
	for _, text := range texts[:min(len(texts), 4*maxAddrs)] {
		if a, err := ma.NewMultiaddr(text); err == nil {
			a, _ = peer.SplitAddr(a)
			if a != nil {
				all = append(all, a)
			}
		}
	}
	return ranked(all)
}

// put notes addresses of a node: its own word, where it was connected (met), or what others say, which does not take
// the place of the former.
func (b *book) put(node strategy.Node, id peer.ID, addrs []ma.Multiaddr, met bool) {
	if node.Name() == Guest {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.entries[id]; old != nil && old.connected && !met {
		addrs, met = slices.Concat(old.addrs, addrs), true
	}
	if addrs = ranked(addrs); len(addrs) == 0 {
		return
	}
	b.clock++
	b.entries[id] = &bookEntry{node, addrs, met, b.clock}
	if len(b.entries) > b.maxEntries {
		b.evict()
	}
}

// evict forgets an eighth, those that were not used for the longest time. mu is held.
func (b *book) evict() {
	ids := slices.SortedFunc(maps.Keys(b.entries), func(x, y peer.ID) int {
		return int(int64(b.entries[x].used - b.entries[y].used))
	})
	for _, id := range ids[:len(ids)-b.maxEntries+b.maxEntries/8] {
		delete(b.entries, id)
	}
}

func (b *book) addrs(id peer.ID) []ma.Multiaddr {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.entries[id]
	if p == nil {
		return nil
	}
	b.clock++
	p.used = b.clock
	return slices.Clone(p.addrs)
}

func (b *book) met(most int) (all []Contact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pages []*bookEntry
	for _, p := range b.entries {
		if p.connected {
			pages = append(pages, p)
		}
	}
	slices.SortFunc(pages, func(x, y *bookEntry) int { return int(int64(y.used - x.used)) })
	for _, p := range pages[:min(len(pages), most)] {
		all = append(all, Contact{p.node, texts(p.addrs)})
	}
	return all
}

// Known are nodes that were connected, in earlier processes too, the last first: whom to ask first after a start.
func (m *Messenger) Known() []Contact { return m.book.met(maxSaved) }

// Learn notes where others say that a node is. Addresses that are none are left out, as are nodes that name no key.
func (m *Messenger) Learn(c Contact) {
	if id, err := idOf(c.Node); err == nil && c.Node != m.node {
		m.book.put(c.Node, id, parsed(c.Addrs), false)
	}
}

// Self is this node, with the addresses by which others may reach it; they change when a router or a relay does.
func (m *Messenger) Self() Contact { return Contact{m.node, texts(ranked(m.host.Addrs()))} }

// Addrs are addresses of this node to give to people, each with the peer that it is.
func (m *Messenger) Addrs() []string {
	var all []string
	for _, a := range ranked(m.host.Addrs()) {
		all = append(all, a.String()+"/p2p/"+m.id.String())
	}
	return all
}

// Contact is a node with the addresses that it says it has, or that are known of it.
func (m *Messenger) Contact(node strategy.Node) Contact {
	id, err := idOf(node)
	if err != nil {
		return Contact{Node: node}
	}
	addrs := m.host.Peerstore().Addrs(id)
	return Contact{node, texts(ranked(append(addrs, m.book.addrs(id)...)))}
}

func (m *Messenger) saveRegularly() {
	for wait := firstSave; ; wait = eachSave {
		select {
		case <-time.After(wait):
			if err := m.saveBook(); err != nil {
				m.log("%v", err)
			}
		case <-m.work.ctx.Done():
			return
		}
	}
}

// saveBook notes what those say that are connected, and writes the file.
func (m *Messenger) saveBook() error {
	for _, p := range m.connected() {
		m.book.put(p.node, p.id, m.host.Peerstore().Addrs(p.id), true)
	}
	if m.book.name == "" {
		return nil
	}
	saved := []savedEntry{}
	for _, c := range m.book.met(maxSaved) {
		saved = append(saved, savedEntry(c))
	}
	data, err := json.MarshalIndent(saved, "", " ")
	if err == nil {
		err = vfs.Replace(vfs.OS, m.book.name, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the addresses of other nodes: %w", err)
	}
	return nil
}
