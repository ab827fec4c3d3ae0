package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// A chunk is a version byte, then independent blocks, each with its length and compressed by zstd. A block begins with
// the Unix time that its times count from. Groups follow: a host's pending URLs in queue order, as package item writes
// them, or an origin's known URLs in order, each without what it shares with the one before. With slices, pending URLs
// come by slice, and known ones still by origin.
const (
	chunkVersion   = 2
	ChunkBytes     = 256 << 10 // maximum size in bytes, unless a single URL is larger
	BlockBytes     = 64 << 10  // size at which a block ends, before compression
	maxChunkMemory = 8 << 20   // limit of the decoded size when writing; readers accept twice as much
	maxBlock       = 1 << 20   // bytes; a larger block is rejected
	maxHost        = 512       // bytes of a host's name with its port
)

// The kinds of groups.
const (
	groupPending = 'w' // a host, its timing, and its pending URLs
	groupRanked  = 'r' // the same, each URL followed by the worth of links to it (a float of 4 bytes)
	groupKnown   = 'k' // an origin, its host's timing, and its known URLs
	groupCookies = 'c' // a host, its timing, and its cookies
)

// ErrChunk reports a chunk that is damaged, or of another version.
var ErrChunk = errors.New("invalid transfer chunk, or one of another version")

// A HostTiming is the timing of a host: the delay that it requests, and the time until its next visit.
type HostTiming struct{ RequestedDelay, Wait time.Duration }

// Sizes limits the size of a block before compression, and of a chunk.
type Sizes struct{ Block, Chunk int } // in bytes

// A ChunkWriter encodes chunks.
type ChunkWriter struct {
	Sizes
	zip    *zstd.Encoder
	Now    time.Time
	blocks []byte        // compressed blocks
	block  entry.Encoder // current block
	weight int           // decoded size of the chunk

	group     []byte                   // encoded start of the current group: kind and name
	host      string                   // of the pending URLs
	worth     func(url string) float32 // nil if chunks do not contain the worth of links
	count     int                      // number of URLs in the group
	urls      entry.Encoder
	lastKnown string // path of the last known URL
}

// NewChunkWriter returns a writer of chunks. Times are relative to now.
func NewChunkWriter(now time.Time, s Sizes) (*ChunkWriter, error) {
	zip, err := newZip()
	return &ChunkWriter{Sizes: s, zip: zip, Now: now}, err
}

func (p *ChunkWriter) size() int {
	return len(p.blocks) + len(p.block.Writer) + len(p.urls.Writer) + 1024
}

func (p *ChunkWriter) empty() bool { return p.weight == 0 }

// BeginPending starts a group of pending URLs.
func (p *ChunkWriter) BeginPending(host string, c HostTiming) {
	kind := byte(groupPending)
	if p.worth != nil {
		kind = groupRanked
	}
	p.begin(kind, host, c)
	p.host = host
}

// BeginKnown starts a group of known URLs.
func (p *ChunkWriter) BeginKnown(origin string, c HostTiming) {
	p.begin(groupKnown, origin, c)
	p.lastKnown = "/"
}

// Cookies adds a group with the cookies of a host.
func (p *ChunkWriter) Cookies(host string, all []cookies.Cookie) {
	p.begin(groupCookies, host, HostTiming{})
	for i := range all {
		p.urls.Writer = cookies.Append(p.urls.Writer, &all[i])
		p.count++
		p.weight += item.Weight + len(all[i].Value)
	}
}

func (p *ChunkWriter) begin(kind byte, name string, c HostTiming) {
	p.endGroup()
	enc := entry.Encoder{Writer: p.group[:0]}
	enc.Byte(kind)
	enc.String(name)
	enc.Int(int64(c.RequestedDelay / time.Millisecond))
	enc.Int(int64((max(c.Wait, 0) + time.Millisecond - 1) / time.Millisecond))
	p.group = enc.Writer
	p.weight += item.Weight + len(name)
}

// Item adds a pending URL.
func (p *ChunkWriter) Item(it *item.Item) {
	p.urls.Writer = item.Append(p.urls.Writer, p.host, it)
	if p.worth != nil {
		p.urls.Writer = binary.LittleEndian.AppendUint32(p.urls.Writer, math.Float32bits(p.worth(it.URL)))
	}
	p.count++
	p.weight += item.Weight + len(it.URL) + len(it.From) + len(it.Seed) + len(it.Path)
}

// Entry adds a known URL. rest is the URL without its origin.
func (p *ChunkWriter) Entry(rest string, v *seen.Entry) {
	e := &p.urls
	e.Writer = append(e.Writer, byte(v.State))
	e.Int(int64(v.Depth))
	e.Int((p.Now.Unix() - v.First.Unix()) / 60)
	e.Suffix(rest, p.lastKnown)
	e.Writer = seen.AppendMeta(e.Writer, &v.Meta, p.Now.Unix())
	p.lastKnown = rest
	p.count++
	p.weight += item.Weight + len(v.URL) + len(v.ETag)
}

// full reports whether the block must end, because of its size or decoded size. The group may continue in the next
// block.
func (p *ChunkWriter) full() bool {
	return len(p.block.Writer)+len(p.urls.Writer) >= p.Sizes.Block || p.weight >= maxChunkMemory
}

func (p *ChunkWriter) endGroup() {
	if len(p.group) == 0 {
		return
	}
	if len(p.block.Writer) == 0 {
		p.block.Int(p.Now.Unix())
	}
	p.block.Writer = append(p.block.Writer, p.group...)
	p.block.Int(int64(p.count))
	p.block.Writer = append(p.block.Writer, p.urls.Writer...)
	p.group, p.count, p.urls.Writer = p.group[:0], 0, p.urls.Writer[:0]
}

// endBlock compresses the block, and reports whether the chunk must be sent, because another block might exceed the
// limit.
func (p *ChunkWriter) endBlock() bool {
	p.endGroup()
	if len(p.block.Writer) == 0 {
		return false
	}
	if len(p.blocks) == 0 {
		p.blocks = append(p.blocks, chunkVersion)
	}
	zipped := p.zip.EncodeAll(p.block.Writer, make([]byte, 0, len(p.block.Writer)/2))
	p.blocks = append(binary.AppendUvarint(p.blocks, uint64(len(zipped))), zipped...)
	p.block.Writer = p.block.Writer[:0]
	return len(p.blocks)+p.Sizes.Block+1024 > p.Sizes.Chunk || p.weight >= maxChunkMemory
}

// Chunk returns the encoded chunk and starts a new one.
func (p *ChunkWriter) Chunk() []byte {
	p.endBlock()
	data := p.blocks
	p.blocks, p.weight = nil, 0
	return data
}

// A Chunk is a decoded chunk.
type Chunk struct {
	Pending []HostQueue
	Known   []HostKnown
	Worths  []Worth // of pending URLs, where it is not 0
	Cookies []cookies.Cookie
	weight  int
}

// A Worth is the worth of the links to a URL in the sending node's order.
type Worth struct {
	URL   string
	Depth int32
	Worth float32
}

const maxWorth = 1 << 40

// A HostQueue contains pending URLs of a host.
type HostQueue struct {
	Host   string
	Timing HostTiming
	Items  []item.Item
}

// A HostKnown contains known URLs of an origin, all in one slice if the host is divided into slices.
type HostKnown struct {
	Host    string
	Timing  HostTiming
	Entries []seen.Entry
}

// A ChunkReader decodes chunks from the network. Its memory is bounded for any input, and a chunk is decoded completely
// or not at all.
type ChunkReader struct {
	slices *item.Slices
	zip    *zstd.Decoder
	block  []byte
}

func newZip() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10))
}

// NewChunkReader returns a reader of chunks, for a crawl with these slices.
func NewChunkReader(slices *item.Slices) (*ChunkReader, error) {
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxBlock))
	return &ChunkReader{slices: slices, zip: zip}, err
}

// Read decodes a chunk. An empty chunk is valid.
func (u *ChunkReader) Read(data []byte) (*Chunk, error) {
	p := &Chunk{}
	if len(data) == 0 {
		return p, nil
	}
	if data[0] != chunkVersion {
		return nil, ErrChunk
	}
	for data = data[1:]; len(data) > 0; {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)-size) {
			return nil, ErrChunk
		}
		var err error
		if u.block, err = u.zip.DecodeAll(data[size:size+int(n)], u.block[:0]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrChunk, err)
		}
		d := entry.NewDecoder(u.block)
		d.Text.Share = BlockBytes
		if (blockReader{d, p, u.slices}).read(); d.Bad {
			return nil, ErrChunk
		}
		data = data[size+int(n):]
	}
	return p, nil
}

type blockReader struct {
	*entry.Decoder
	chunk  *Chunk
	slices *item.Slices
}

func (d blockReader) read() {
	p := d.chunk
	now := d.Int()
	for len(d.Rest) > 0 && !d.Bad {
		kind, name := d.Byte(), d.String()
		c := HostTiming{d.millis(), d.millis()}
		n := d.Int()
		d.weigh(len(name))
		if n < 0 || n > int64(len(d.Rest)) {
			d.Bad = true
		}
		switch {
		case d.Bad:
		case (kind == groupPending || kind == groupRanked) && len(name) > 0 && len(name) <= maxHost &&
			strings.IndexByte(name, '/') < 0:
			items := d.items(name, int(n), kind == groupRanked)
			p.Pending = append(p.Pending, HostQueue{Host: name, Timing: c, Items: items})
		case kind == groupCookies && len(name) > 0 && len(name) <= maxHost:
			d.cookies(item.HostOfSlice(name), int(n))
		case kind == groupKnown && len(name) <= entry.MaxURL:
			p.Known = d.bySlice(p.Known, HostKnown{Host: item.HostOf(name + "/"), Timing: c,
				Entries: d.entries(name, now, int(n))})
		default:
			d.Bad = true
		}
	}
}

// bySlice appends the known URLs of an origin, grouped by slice.
func (d blockReader) bySlice(all []HostKnown, k HostKnown) []HostKnown {
	if d.slices == nil {
		return append(all, k)
	}
	at := map[string]int{}
	for _, e := range k.Entries {
		slice := d.slices.OfHost(k.Host, e.URL)
		i, met := at[slice]
		if !met {
			i = len(all)
			at[slice] = i
			all = append(all, HostKnown{Host: slice, Timing: k.Timing})
		}
		all[i].Entries = append(all[i].Entries, e)
	}
	return all
}

// weigh adds to the decoded size, and rejects the chunk if that is too large.
func (d blockReader) weigh(size int) {
	if d.chunk.weight += item.Weight + size; d.chunk.weight > 2*maxChunkMemory {
		d.Bad = true
	}
}

// maxDelay is the longest delay or wait that a chunk may contain.
const maxDelay = 365 * 24 * time.Hour

func (d blockReader) millis() time.Duration {
	ms := d.Int()
	if ms < 0 || ms > int64(maxDelay/time.Millisecond) {
		d.Bad = true
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func (d blockReader) items(host string, n int, ranked bool) (items []item.Item) {
	for range n {
		it := d.Item(host)
		worth := float32(0)
		if ranked {
			worth = d.worth()
		}
		if it.Depth < 0 || it.Robots != "" || d.slices.Of(it.URL) != host || max(len(it.URL), len(it.From), len(it.Seed),
			len(it.Path)) > entry.MaxURL {
			d.Bad = true
		}
		if d.weigh(len(it.URL) + len(it.From) + len(it.Seed) + len(it.Path)); d.Bad {
			return nil
		}
		if isCanonical(item.HostOfSlice(host), it.URL) { // an earlier version may have admitted others
			items = append(items, it)
			if worth != 0 {
				d.chunk.Worths = append(d.chunk.Worths, Worth{it.URL, it.Depth, worth})
			}
		}
	}
	return items
}

func (d blockReader) cookies(host string, n int) {
	hostname := cookies.HostOf(host)
	for range n {
		c, rest, ok := cookies.Read(d.Rest)
		if d.Rest = rest; !ok || !c.Covers(hostname) {
			d.Bad = true
		}
		if d.weigh(len(c.Value)); d.Bad {
			return
		}
		d.chunk.Cookies = append(d.chunk.Cookies, c)
	}
}

func (d blockReader) worth() float32 {
	if len(d.Rest) < 4 {
		d.Bad = true
		return 0
	}
	worth := math.Float32frombits(binary.LittleEndian.Uint32(d.Rest))
	d.Rest = d.Rest[4:]
	if !(worth >= -maxWorth && worth <= maxWorth) {
		d.Bad = true
		return 0
	}
	return worth
}

func (d blockReader) entries(origin string, now int64, n int) (entries []seen.Entry) {
	if item.HostOf(origin+"/") == "" || item.OriginOf(origin+"/") != origin {
		d.Bad = true
		return nil
	}
	for before := "/"; n > 0; n-- {
		e := seen.Entry{State: seen.State(d.Byte()), Depth: int32(d.Int()), First: time.Unix(now-60*d.Int(), 0).UTC()}
		rest := d.Suffix(before, entry.MaxURL)
		e.URL, before = origin+rest, rest
		meta, after, ok := seen.ReadMeta(d.Rest, now)
		if !ok || e.State > seen.Known || e.Depth < 0 || rest == "" || rest[0] != '/' || len(e.URL) > entry.MaxURL {
			d.Bad = true
		}
		e.Meta, d.Rest = meta, after
		if d.weigh(len(e.URL) + len(e.ETag)); d.Bad {
			return nil
		}
		entries = append(entries, e)
	}
	return entries
}

func isCanonical(host, url string) bool {
	u, err := weburl.Parse(url)
	return err == nil && u.IsHTTP() && u.Host() == host && u.String() == url
}
