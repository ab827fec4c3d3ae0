package member

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// A post is an outbox, the nodes that it sends to, and a network between them that loses, duplicates and reorders
// messages.
type post struct {
	t       *testing.T
	dice    *rand.Rand
	cfg     OutboxConfig
	now     time.Time
	box     *Outbox
	owners  map[string]strategy.Node          // of hosts; those with none are missing
	asked   map[strategy.Node]map[string]bool // hosts that each node believes to own; updated late
	ways    []Batch
	answers []answerOf
	sent    map[uint64]time.Time // batches of this process, with the time of the last sending
	waits   map[uint64]string    // links that were put and not removed
	taken   map[string]bool      // data that some owner has accepted
	lossy   bool
	puts    int
	resent  int
}

type answerOf struct {
	from    strategy.Node
	batch   uint64
	refused []int
}

var postNodes = []strategy.Node{"a~1", "b~1", "c~1"}

// TestOutboxDeliversAll puts links. Random events decide what happens to batches and answers, which nodes own hosts,
// and when the process dies and resumes from its journal. In the end all links were accepted by the owners of their
// hosts at that time.
func TestOutboxDeliversAll(t *testing.T) {
	for seed := range uint64(300) {
		p := newPost(t, seed)
		for range 400 {
			p.step()
			p.check()
		}
		p.settle()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func newPost(t *testing.T, seed uint64) *post {
	dice := rand.New(rand.NewPCG(seed, 7))
	p := &post{t: t, dice: dice, now: time.Unix(1e9, 0), owners: map[string]strategy.Node{}, lossy: true,
		asked: map[strategy.Node]map[string]bool{}, waits: map[uint64]string{}, taken: map[string]bool{}}
	for _, n := range postNodes {
		p.asked[n] = map[string]bool{}
	}
	p.cfg = OutboxConfig{Window: 1 + dice.IntN(3), Bytes: 60 + dice.IntN(200), Links: 1 + dice.IntN(8), Retry: time.Second,
		MaxRetry: 8 * time.Second, Wait: 100 * time.Millisecond, MaxWait: time.Second}
	p.open(1)
	return p
}

// open starts a process.
func (p *post) open(first uint64) {
	p.cfg.First = first
	p.box, p.sent = NewOutbox(p.cfg), map[uint64]time.Time{}
	var numbers []uint64
	for n := range p.waits {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		host, _, _ := strings.Cut(p.waits[n], "/")
		p.box.Restore(n, host, p.waits[n])
	}
}

func (p *post) step() {
	switch p.dice.IntN(13) {
	case 0, 1, 2:
		host := fmt.Sprintf("host%d", p.dice.IntN(12))
		data := fmt.Sprintf("%s/%d%s", host, p.puts, strings.Repeat("x", p.dice.IntN(40)))
		if p.dice.IntN(40) == 0 {
			data += strings.Repeat("y", 400) // larger than a batch
		}
		p.puts++
		n := p.box.Put(host, data)
		if p.waits[n] != "" {
			p.t.Errorf("number %d is given twice", n)
		}
		p.waits[n] = data
	case 3, 4:
		p.tick()
	case 5, 6, 7:
		p.deliver()
	case 8, 9:
		p.answer()
	case 10:
		p.move()
	case 11:
		if hosts, _ := p.box.Unrouted(); p.dice.IntN(2) == 0 {
			p.box.RetryDeferred(hosts)
		}
	case 12:
		if p.dice.IntN(10) == 0 {
			p.open(p.cfg.First + 1000)
		}
	}
}

// tick advances the time, and sends the due batches.
func (p *post) tick() {
	p.now = p.now.Add(time.Duration(p.dice.IntN(1500)) * time.Millisecond)
	for _, b := range p.box.Batches(p.now, p.owner) {
		if last, again := p.sent[b.Number]; again {
			p.resent++
			if p.now.Sub(last) < p.cfg.Retry {
				p.t.Errorf("batch %d is sent again after %v", b.Number, p.now.Sub(last))
			}
		}
		p.sent[b.Number] = p.now
		links := unpackLinks(p.t, b.Data)
		if len(links) == 0 || len(links) > p.cfg.Links || len(links) > 1 && len(b.Data) > p.cfg.Bytes {
			p.t.Errorf("a batch of %d links and %d bytes", len(links), len(b.Data))
		}
		p.ways = append(p.ways, b)
	}
}

func (p *post) owner(host string) (strategy.Node, bool) {
	n, ok := p.owners[host]
	return n, ok
}

// move gives a host another owner, or none; the old and the new owner learn it late.
func (p *post) move() {
	host := fmt.Sprintf("host%d", p.dice.IntN(12))
	if i := p.dice.IntN(len(postNodes) + 1); i < len(postNodes) {
		p.owners[host] = postNodes[i]
	} else {
		delete(p.owners, host)
	}
	host = fmt.Sprintf("host%d", p.dice.IntN(12))
	for _, n := range postNodes {
		p.asked[n][host] = p.owners[host] == n
	}
}

func (p *post) deliver() {
	b, ok := pull(p, &p.ways)
	if !ok {
		return
	}
	a := answerOf{from: b.To, batch: b.Number}
	for i, link := range unpackLinks(p.t, b.Data) {
		host, _, _ := strings.Cut(link, "/")
		if p.asked[b.To][host] {
			p.taken[link] = true
		} else {
			a.refused = append(a.refused, i)
		}
	}
	p.answers = append(p.answers, a)
}

func (p *post) answer() {
	a, ok := pull(p, &p.answers)
	if !ok {
		return
	}
	switch p.dice.IntN(20) {
	case 0:
		a.from = "x~1" // of another node
	case 1:
		a.refused = append(slices.Clone(a.refused), 1<<20)
	}
	p.gone(p.box.Answered(a.from, a.batch, a.refused, p.now))
}

// gone checks removed links: they were pending, and were accepted.
func (p *post) gone(all []Range) {
	for _, r := range all {
		for n := r.First; n <= r.Last; n++ {
			if link := p.waits[n]; link == "" || !p.taken[link] {
				p.t.Errorf("link %d %q is gone, and nobody has it", n, link)
			}
			delete(p.waits, n)
		}
	}
}

// pull takes a random message in transit: it may also stay there, or be lost.
func pull[T any](p *post, from *[]T) (one T, ok bool) {
	if len(*from) == 0 {
		return one, false
	}
	i := p.dice.IntN(len(*from))
	one = (*from)[i]
	if !p.lossy || p.dice.IntN(5) > 0 {
		*from = slices.Delete(*from, i, i+1)
	}
	return one, !p.lossy || p.dice.IntN(5) > 0
}

// check verifies the outbox: each link is in one place.
func (p *post) check() {
	places := map[*link]int{}
	count := func(links []*link) {
		for _, k := range links {
			places[k]++
		}
	}
	count(p.box.fresh)
	flying := map[strategy.Node]int{}
	for _, f := range p.box.flights {
		count(f.links)
		flying[f.to]++
	}
	for _, l := range p.box.lanes {
		count(l.queue)
		if l.inFlight != flying[l.to] || l.inFlight > p.cfg.Window {
			p.t.Errorf("%d batches fly to %s, it counts %d, and %d may", flying[l.to], l.to, l.inFlight, p.cfg.Window)
		}
	}
	for _, r := range p.box.deferred {
		count(r.links)
	}
	var bytes int64
	for n, data := range p.waits {
		k := p.box.links[n]
		if k == nil || k.data != data || places[k] != 1 {
			p.t.Fatalf("link %d is in %d places", n, places[k])
		}
		bytes += k.cost()
	}
	if len(places) != len(p.waits) || p.box.Len() != len(p.waits) || p.box.Bytes() != bytes ||
		len(p.box.Numbers()) != len(p.waits) {
		p.t.Errorf("%d links in places, %d and %d bytes by its own count, want %d and %d", len(places), p.box.Len(),
			p.box.Bytes(), len(p.waits), bytes)
	}
}

// settle ends all faults: then everything arrives soon.
func (p *post) settle() {
	p.lossy = false
	for i := range 12 {
		host := fmt.Sprintf("host%d", i)
		p.owners[host] = postNodes[i%3]
		for _, n := range postNodes {
			p.asked[n][host] = p.owners[host] == n
		}
	}
	for end := p.now.Add(time.Hour); len(p.waits) > 0 && p.now.Before(end); {
		p.tick()
		for len(p.ways) > 0 {
			p.deliver()
		}
		for len(p.answers) > 0 {
			a, _ := pull(p, &p.answers)
			p.gone(p.box.Answered(a.from, a.batch, a.refused, p.now))
		}
		p.check()
	}
	if len(p.waits) > 0 || p.box.Len() > 0 || p.box.Bytes() != 0 || len(p.taken) != p.puts {
		p.t.Errorf("%d links wait for ever, %d of %d were taken", len(p.waits), len(p.taken), p.puts)
	}
	if p.tick(); len(p.ways) > 0 || len(p.box.lanes)+len(p.box.flights)+len(p.box.deferred) > 0 {
		p.t.Errorf("an empty outbox sends, or keeps something: %+v", p.box)
	}
}

func unpackLinks(t *testing.T, data []byte) (links []string) {
	t.Helper()
	if data[0] != LinksVersion {
		t.Fatalf("version %d", data[0])
	}
	for data = data[1:]; len(data) > 0; {
		n, size := binary.Uvarint(data)
		links = append(links, string(data[size:size+int(n)]))
		data = data[size+int(n):]
	}
	return links
}

// TestOutboxIsDeterministic runs the same events twice.
func TestOutboxIsDeterministic(t *testing.T) {
	var said [2][]byte
	for i := range said {
		p := newPost(t, 99)
		for range 2000 {
			p.step()
			for _, b := range p.ways {
				said[i] = fmt.Appendf(said[i], "%s %d %x\n", b.To, b.Number, b.Data)
			}
		}
		if p.resent == 0 {
			t.Error("nothing was sent again")
		}
	}
	if !bytes.Equal(said[0], said[1]) {
		t.Error("the same seed, and another way")
	}
}

// TestOutboxLeavesTheDead: a node dies with all its batches unanswered. Once its hosts have another owner, they go
// there within the first wait for an answer, not the last, which was long.
func TestOutboxLeavesTheDead(t *testing.T) {
	o, now, owner := NewOutbox(OutboxConfig{Links: 1}), time.Unix(1e9, 0), strategy.Node("a~1")
	own := func(string) (strategy.Node, bool) { return owner, true }
	for range 10 {
		o.Put("h", "h/")
	}
	for range 400 {
		now = now.Add(100 * time.Millisecond)
		o.Batches(now, own)
	}
	owner = "b~1"
	got := 0
	for range 20 {
		now = now.Add(100 * time.Millisecond)
		for _, b := range o.Batches(now, own) {
			if b.To != owner {
				t.Errorf("a batch for %s", b.To)
			}
			got++
			o.Answered(b.To, b.Number, nil, now)
		}
	}
	if got != 10 || o.Len() != 0 {
		t.Errorf("%d of 10 links came to the new owner, %d wait", got, o.Len())
	}
}

func BenchmarkOutbox(b *testing.B) {
	own := func(host string) (strategy.Node, bool) { return postNodes[len(host)%3], true }
	data := strings.Repeat("x", 150)
	o, now := NewOutbox(OutboxConfig{}), time.Unix(1e9, 0)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		o.Put(data[:10+n%3], data)
		if n%2000 > 0 {
			continue
		}
		for _, batch := range o.Batches(now, own) {
			o.Answered(batch.To, batch.Number, nil, now)
		}
	}
}

// TestWantedLinks counts deferred links, in whatever order they are deferred, retried and accepted.
func TestWantedLinks(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	nobody := func(string) (strategy.Node, bool) { return "", false }
	for _, host := range []string{"x", "y", "x"} {
		o.Put(host, host+"/")
	}
	o.Batches(now, nobody) // before Unrouted is called
	want := func(links map[string]int) {
		t.Helper()
		hosts, counts := o.Unrouted()
		got := map[string]int{}
		for i, h := range hosts {
			got[h] = counts[i]
		}
		if !maps.Equal(got, links) {
			t.Errorf("%v wait, not %v", got, links)
		}
		for host, n := range links {
			if o.Deferred(host) != n {
				t.Errorf("%d wait for %s, not %d", o.Deferred(host), host, n)
			}
		}
	}
	want(map[string]int{})
	o.Put("x", "x/2")
	o.Batches(now, nobody)
	want(map[string]int{"x": 3})
	o.Batches(now.Add(time.Minute), nobody)
	want(map[string]int{"x": 3, "y": 1})
	o.RetryDeferred([]string{"x"})
	out := o.Batches(now.Add(time.Minute), func(host string) (strategy.Node, bool) { return "a~1", host == "x" })
	o.Answered("a~1", out[0].Number, []int{1}, now.Add(time.Minute))
	want(map[string]int{"x": 1})
}

// TestWantedWithoutWhatIsIdle: filtered links are deferred, and are not counted as unrouted.
func TestWantedWithoutWhatIsIdle(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	wanted := func(owner strategy.Node) map[string]int {
		now = now.Add(time.Minute) // deferred links are routed again
		for _, b := range o.Batches(now, func(host string) (strategy.Node, bool) {
			return owner, owner != "" &&
				host == "x"
		}) {
			o.Answered(b.To, b.Number, nil, now)
		}
		got := map[string]int{}
		hosts, links := o.Unrouted()
		for i, host := range hosts {
			got[host] = links[i]
		}
		return got
	}
	o.Put("x", "x/1")
	for _, host := range []string{"x", "y"} {
		o.SetFiltered(o.Put(host, host+"/idle"))
	}
	o.AddUnrouted("z")
	wanted("")
	if got, want := wanted(""), map[string]int{"x": 1, "y": 0}; !maps.Equal(got, want) || o.Deferred("x") != 2 {
		t.Errorf("%v are wanted, not %v; %d wait for x", got, want, o.Deferred("x"))
	}
	wanted("a~1")
	o.Put("x", "x/2")
	o.AddUnrouted("z")
	if got, want := wanted(""), map[string]int{"x": 1, "y": 0, "z": 1}; !maps.Equal(got, want) {
		t.Errorf("%v are wanted, not %v", got, want)
	}
}

// Unrouted returns the hosts of links that found no owner or were refused, each once, from the first call on.
func TestWantedHosts(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	owners := map[string]strategy.Node{"owned": "a~1"}
	owner := func(host string) (strategy.Node, bool) { to, ok := owners[host]; return to, ok }
	want := func(hosts ...string) {
		t.Helper()
		if got, _ := o.Unrouted(); !slices.Equal(got, hosts) {
			t.Fatalf("%q are wanted, not %q", got, hosts)
		}
	}
	for _, host := range []string{"x", "owned", "x", "y", "x"} {
		o.Put(host, host+"/")
	}
	batch := o.Batches(now, owner)
	want()
	now = now.Add(time.Second) // deferred links are routed again
	o.Batches(now, owner)
	want("x", "y")
	want()
	if o.Answered("a~1", batch[0].Number, []int{0}, now) != nil {
		t.Fatal("a refused link is gone")
	}
	want("owned")
	now = now.Add(10 * time.Second)
	o.Batches(now, owner)
	want("x", "y") // the other has an owner, as far as known
}

// If there are more unrouted hosts than Unrouted keeps, all of them are returned in turn.
func TestWantedHostsAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	o.Unrouted()
	for i := range 25_000 {
		host := fmt.Sprint("h", i)
		o.Put(host, host)
		o.Put(host, host)
	}
	named := map[string]bool{}
	for i := range 3 {
		o.Batches(now, nobody)
		hosts, _ := o.Unrouted()
		if len(hosts) != maxUnrouted {
			t.Errorf("%d are named", len(hosts))
		}
		for _, host := range hosts {
			named[host] = true
		}
		now = now.Add(time.Minute)
		if want := min(25_000, (i+1)*maxUnrouted); len(named) != want {
			t.Errorf("after %d routes %d have been named, not %d", i+1, len(named), want)
		}
	}
}

func nobody(string) (strategy.Node, bool) { return "", false }

// Deferred links to a host whose owner has become known are sent at once; other links stay deferred.
func TestWakeRoutesAtOnce(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	for range 10 {
		for _, host := range []string{"x", "y", "z"} {
			o.Put(host, host)
		}
		o.Batches(now, nobody)
		now = now.Add(time.Millisecond)
	}
	owners := map[string]int{"x": 10, "y": 10, "z": 10}
	sent := func(want ...string) {
		t.Helper()
		got := ""
		for _, b := range o.Batches(now, func(host string) (strategy.Node, bool) {
			owners[host]--
			return strategy.Node(host),
				true
		}) {
			got += string(b.To)
			if want := 1 + 10*2; len(b.Data) != want {
				t.Errorf("%d bytes go to %s, not %d", len(b.Data), b.To, want)
			}
		}
		if got != strings.Join(want, "") {
			t.Fatalf("%q are sent, not %q", got, want)
		}
	}
	sent()
	o.RetryDeferred([]string{"y", "elsewhere"})
	sent("y")
	if owners["x"] != 10 || owners["z"] != 10 {
		t.Errorf("others are routed: %v", owners)
	}
	o.RetryDeferred([]string{})
	sent()
	o.RetryDeferred(nil)
	sent("x", "z")
	if len(o.deferred) > 0 {
		t.Errorf("%d groups of links rest", len(o.deferred))
	}
}

// A node that has refused a link is not tried again at once, whatever RetryDeferred is called for; a new owner is.
func TestWakeAsksOnlyNewOwners(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	o.Put("x", "x")
	owner := strategy.Node("a")
	sent := func() []Batch { return o.Batches(now, func(string) (strategy.Node, bool) { return owner, true }) }
	b := sent()
	o.Answered("a", b[0].Number, []int{0}, now)
	o.RetryDeferred(nil)
	if again := sent(); len(again) > 0 {
		t.Errorf("%s, who has refused a link, is asked at once again", again[0].To)
	}
	owner = "b"
	if late := sent(); len(late) > 0 {
		t.Error("a link is routed before it is woken")
	}
	o.RetryDeferred(nil)
	if b := sent(); len(b) != 1 || b[0].To != "b" {
		t.Errorf("a new owner is not asked: %v", b)
	}
}

// TestWakeAsksANodeWithoutName: the owner may be the outbox's own node, for which the owner function returns "".
func TestWakeAsksANodeWithoutName(t *testing.T) {
	now := time.Unix(1e9, 0)
	o := NewOutbox(OutboxConfig{})
	o.Put("x", "x")
	owned := false
	sent := func() []Batch { return o.Batches(now, func(string) (strategy.Node, bool) { return "", owned }) }
	if b := sent(); len(b) > 0 {
		t.Fatalf("a link without an owner is sent: %v", b)
	}
	owned = true
	o.RetryDeferred(nil)
	if b := sent(); len(b) != 1 {
		t.Errorf("a link whose host has got an owner waits: %v", b)
	}
}

// BenchmarkRoute routes links that find no owner, with their hosts collected or not; BenchmarkWake retries one host of
// many.
func BenchmarkRoute(b *testing.B) {
	for _, asked := range []bool{false, true} {
		b.Run(fmt.Sprint("wanted=", asked), func(b *testing.B) {
			o, now := restingBox(10_000), time.Unix(1e9, 0)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Minute)
				o.Batches(now, nobody)
				if asked {
					o.Unrouted()
				}
			}
		})
	}
}

func BenchmarkWake(b *testing.B) {
	o, host := restingBox(10_000), []string{"h7"}
	b.ReportAllocs()
	for b.Loop() {
		o.RetryDeferred(host)
		o.Batches(time.Unix(1e9, 0), nobody)
	}
}

// restingBox returns an outbox with deferred links to a thousand hosts.
func restingBox(links int) *Outbox {
	o := NewOutbox(OutboxConfig{})
	for i := range links {
		host := fmt.Sprint("h", i%1000)
		o.Put(host, host)
	}
	o.Batches(time.Unix(1e9, 0), nobody)
	return o
}
