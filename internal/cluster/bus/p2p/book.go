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

// A book has addresses of nodes: those reported by others (Learn), and those of nodes that were connected. The latest
// of these are saved in a file, so that a restarted node finds others.
type book struct {
	name       string // name of the file; "": not saved
	maxEntries int

	mu      sync.Mutex // guards the fields below
	entries map[peer.ID]*bookEntry
	clock   uint64 // increases with each use of an entry
}

type bookEntry struct {
	node      strategy.Node
	addrs     []ma.Multiaddr
	connected bool   // the node was connected once
	used      uint64 // clock of the last put or lookup
}

type savedEntry struct {
	Node  strategy.Node `json:"node"`
	Addrs []string      `json:"addrs"`
}

// openBook reads the file. It ignores a damaged file.
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

// put adds addresses of a node: its own, if it is or was connected (met), or reported ones, which do not replace its
// own.
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

// evict removes at least an eighth of the entries, the least recently used ones. mu is held.
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

// Known returns nodes that were connected, in earlier processes too, the most recent first. They are the ones to dial
// first after a start.
func (m *Messenger) Known() []Contact { return m.book.met(maxSaved) }

// Learn adds addresses of a node that other nodes report. It ignores invalid addresses, and nodes without a key in
// their identity.
func (m *Messenger) Learn(c Contact) {
	if id, err := idOf(c.Node); err == nil && c.Node != m.node {
		m.book.put(c.Node, id, parsed(c.Addrs), false)
	}
}

// Self returns this node, with the addresses by which others can reach it. They change when a router or a relay does.
func (m *Messenger) Self() Contact { return Contact{m.node, texts(ranked(m.host.Addrs()))} }

// Addrs returns addresses of this node for users, each with the peer ID.
func (m *Messenger) Addrs() []string {
	var all []string
	for _, a := range ranked(m.host.Addrs()) {
		all = append(all, a.String()+"/p2p/"+m.id.String())
	}
	return all
}

// Contact returns a node with its own addresses, or with the known ones.
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

// saveBook adds the addresses of connected nodes, and writes the file.
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
		return fmt.Errorf("save the addresses of other nodes: %w", err)
	}
	return nil
}
