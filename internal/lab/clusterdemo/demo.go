package clusterdemo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/secret"
	"kumo/internal/base/stats"
	"kumo/internal/lab/synthweb"
)

// Settings configure a demo.
type Settings struct {
	Web              synthweb.Config
	Nodes            int
	Strategy         string
	UnreachableShare float64 // fraction of the hosts that each node cannot reach
	Out              string  // folder with the nodes' folders and logs
	UI               bool
	NoToken          bool // serve the nodes' web pages without a token
	Delay            time.Duration
	Timeout          time.Duration // the demo fails if it takes longer
	W                io.Writer

	Environment func(secret.Secret) []string                                          // environment of a node's process
	Start       func(ctx context.Context, control admin.Client, seeds []string) error // starts the crawl
	// URL of a node's web page, without and with its token; "" if it has none
	PageOf func(dir string) (url, link string)
}

// A Demo is a cluster on this machine that crawls a synthetic web.
type Demo struct {
	Settings

	Server  *synthweb.Server
	Secret  secret.Secret
	Servers []string // addresses of the cluster's servers
	Procs   []*Node
	Started time.Time // when the crawl started
	Control string    // last known control unit

	web         *synthweb.Web
	lastMembers string            // the line on members printed last
	lastPrinted time.Time         // time of the last line
	measures    *inspect.Measures // last known ones; nil: none
}

func (d *Demo) plannedEvents() string {
	if d.Mesh() {
		return "2 left, 2 killed"
	}
	return "1 killed"
}

// numServers returns how many nodes listen at an address that is known in advance.
func (d *Demo) numServers() int {
	if d.Mesh() {
		return d.Nodes
	}
	return 3
}

// HubDelay is the default delay with strategy hub. It makes up for the time needed to find nodes that reach the hosts
// of the killed node.
const HubDelay = 200 * time.Millisecond

// Hub reports whether a control unit assigns hosts.
func (d *Demo) Hub() bool { return strings.HasPrefix(d.Strategy, "hub") }

// races reports whether nodes fetch from a host before the control unit has assigned it. Two nodes may then send
// requests to one host for a while.
func (d *Demo) races() bool { return d.Strategy == "hub/paper" }

// Run crawls, and prints events and the score of the servers. It returns an error if the score shows a fault.
func (d *Demo) Run(ctx context.Context) (err error) {
	if err := clearDemo(d.Out); err != nil {
		return err
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		d.Timeout,
		fmt.Errorf("the demo took longer than %v: the nodes' "+
			"logs are in %s", d.Timeout, filepath.Join(d.Out, "*.log")),
	)
	defer cancel()
	d.web = synthweb.New(d.Web)
	d.Server, err = synthweb.Serve(ctx, d.web, synthweb.ServeOptions{DNS: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Server.Close()) }()
	d.Server.Score() // computes the truth in advance, which takes a moment
	d.Secret = secret.New()
	if d.Servers, err = FreeAddresses(d.numServers()); err != nil {
		return err
	}
	defer d.KillAll()
	for range d.Nodes - 1 {
		if err := d.startNode(); err != nil {
			return err
		}
	}
	crawl := d.crawl
	if d.Mesh() {
		crawl = d.crawlMesh
	}
	if err := crawl(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return d.printScore(time.Since(begun))
}

func (d *Demo) crawl(ctx context.Context) (err error) {
	o := cluster.NodeOptions{Join: d.Servers, Secret: d.Secret}
	control, err := cluster.OpenClient(ctx, Crawl, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	if err := d.Start(ctx, control, d.Server.SeedURLs()); err != nil {
		return err
	}
	d.Started = time.Now()
	d.Logf("the crawl begins: %d nodes, 3 of them with servers, %s", d.Nodes-1, d.Server.SeedURLs()[0])
	for _, part := range []func(context.Context, admin.Client) error{d.waitFormed, d.addNode, d.killNode, d.WaitEnd} {
		if err := part(ctx, control); err != nil {
			return err
		}
	}
	return nil
}

// errEnded means that the crawl was done before the awaited event, as on a slow machine.
var errEnded = errors.New("the crawl was done before the last node had joined and a killed node was replaced: " +
	"give it more pages with --pages")

// Crawl is the name of the crawl.
const Crawl = "demo"

// waitSettled waits until the given number of nodes are members and all hosts have an owner.
func (d *Demo) waitSettled(ctx context.Context, control admin.Client, nodes int) error {
	return d.WaitFor(ctx, control, func(c *inspect.Cluster) bool { return c.Settled && Members(c) == nodes })
}

func (d *Demo) waitFormed(ctx context.Context, control admin.Client) error {
	return d.waitSettled(ctx, control, d.Nodes-1)
}

func (d *Demo) addNode(ctx context.Context, control admin.Client) error {
	if err := d.startNode(); err != nil {
		return err
	}
	d.Logf("%s joins", d.Procs[len(d.Procs)-1].Name)
	return d.waitSettled(ctx, control, d.Nodes)
}

// killNode kills a node that runs a server; with a control unit, the control unit.
func (d *Demo) killNode(ctx context.Context, control admin.Client) error {
	victim, what := d.Procs[1], ""
	if i := slices.IndexFunc(d.Procs[:len(d.Servers)], func(p *Node) bool { return p.Name == d.Control }); i >= 0 {
		victim, what = d.Procs[i], ", the "+(&inspect.Cluster{Strategy: d.Strategy}).LeaderWord()+","
	}
	if err := victim.Kill(); err != nil {
		return err
	}
	d.Logf("%s%s is killed, together with its server", victim.Name, what)
	return d.waitSettled(ctx, control, d.Nodes-1)
}

// WaitEnd waits until the crawl is done and its processes have ended.
func (d *Demo) WaitEnd(ctx context.Context, control admin.Client) error {
	err := d.WaitFor(ctx, control, func(c *inspect.Cluster) bool { return c.State == "done" })
	if err != nil && !errors.Is(err, errEnded) {
		return err
	}
	return d.wait(ctx)
}

func (d *Demo) wait(ctx context.Context) error {
	for _, p := range d.Procs {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Members returns the number of members of a cluster.
func Members(c *inspect.Cluster) (n int) {
	for i := range c.Nodes {
		if c.Nodes[i].Is == inspect.NodeMember {
			n++
		}
	}
	return n
}

// WaitFor polls the cluster until wanted returns true, and prints changes.
func (d *Demo) WaitFor(ctx context.Context, control admin.Client, wanted func(*inspect.Cluster) bool) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := control.Cluster(ctx, Crawl); err == nil {
			d.printChanges(c)
			d.printPages()
			if wanted(c) {
				return nil
			}
			if c.State == "done" {
				return errEnded
			}
		}
		ended := 0
		for _, p := range d.Procs {
			if err := p.failed(); err != nil {
				return err
			}
			if p.ended() {
				ended++
			}
		}
		if ended == len(d.Procs) {
			return errEnded
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// printChanges prints changes, and the progress from time to time.
func (d *Demo) printChanges(c *inspect.Cluster) {
	line := membersLine(c)
	if c.Measures != nil {
		d.measures = c.Measures
	}
	switch {
	case len(c.Nodes) > 0 && line != d.lastMembers:
		d.lastMembers = line
		d.Logf("%s", line)
	case time.Since(d.lastPrinted) >= 5*time.Second:
		d.Logf("%.0f pages/s, %d URLs wait%s", c.Totals.Rate, c.Totals.Waiting, ownedWords(c))
	}
	d.Control = c.Control
}

// printPages prints the URLs of the nodes' web pages as they become available.
func (d *Demo) printPages() {
	for _, p := range d.Procs {
		if !d.UI || p.page != "" {
			continue
		}
		if url, link := d.PageOf(d.folderOf(p)); url != "" {
			p.page = url
			d.Logf("the web page of %s is %s", p.Name, link)
		}
	}
}

// ownedWords returns how many hosts each node owns, if a control unit assigns them.
func ownedWords(c *inspect.Cluster) string {
	var each []string
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Facts == nil || n.Is != inspect.NodeMember {
			continue
		}
		words := fmt.Sprintf("%s %d", n.Name, n.Owned)
		if n.Parked > 0 {
			words += fmt.Sprintf(" (%d parked)", n.Parked)
		}
		each = append(each, words)
	}
	if each == nil {
		return ""
	}
	return "; hosts: " + strings.Join(each, ", ")
}

func membersLine(c *inspect.Cluster) string {
	by := map[inspect.NodeRole][]string{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		by[n.Is] = append(by[n.Is], n.Name)
	}
	line := fmt.Sprintf("members: %s", strings.Join(by[inspect.NodeMember], " "))
	for _, is := range []inspect.NodeRole{inspect.NodeJoining, inspect.NodeLeaving, inspect.NodeDead} {
		if len(by[is]) > 0 {
			line += fmt.Sprintf("; %s: %s", is, strings.Join(by[is], " "))
		}
	}
	if !c.Settled {
		line += "; hosts change owner"
	}
	if c.Control != "" {
		line += "; " + c.LeaderWord() + ": " + c.Control
	}
	return line
}

// Logf prints an event with its time.
func (d *Demo) Logf(format string, args ...any) {
	d.lastPrinted = time.Now()
	fmt.Fprintf(d.W, "%5.1fs  %5d requests  %s\n", time.Since(d.Started).Seconds(), d.Server.Requests(),
		fmt.Sprintf(format, args...))
}

// printScore prints the score of the servers. It returns an error if the crawl made faults.
func (d *Demo) printScore(took time.Duration) error {
	s := d.Server.Score()
	fmt.Fprintf(d.W, "\nWhat the servers saw:\n%s\nThe nodes' folders and logs are in %s.\n", s, d.Out)
	if d.measures != nil {
		fmt.Fprintf(d.W, "Measures by the nodes at the end: %s\n", d.measures)
	}
	faults, impolite := coverageFaults(&s), politenessFaults(&s, d.Delay)
	verdict := "politeness held"
	if len(faults)+len(impolite) > 0 {
		verdict = strings.Join(append(slices.Clone(faults), impolite...), ", ")
	}
	if d.races() {
		fmt.Fprintf(d.W, "With hub/paper a node fetches from a new host before the control unit has answered, as in the "+
			"DSpider paper.\nTwo nodes may then send requests to one host, until one of them learns that it lost. "+
			"These races: %s, %s.\n", stats.Count(s.Repeats+s.RepeatsOther, "URLs fetched twice"),
			cmp.Or(strings.Join(impolite, ", "), "no request sooner than the delay"))
	} else {
		faults = append(faults, impolite...)
	}
	fmt.Fprintf(d.W, "%d nodes, 1 joined, %s: %d of %d reachable URLs fetched, %d fetched again, %s, gap at "+
		"least %v, %.0f s\n", d.Nodes, d.plannedEvents(), s.Covered, s.Truth, s.Repeats+s.RepeatsOther, verdict,
		s.LeastGap.Value.Round(time.Millisecond), took.Seconds())
	if len(faults) > 0 {
		return fmt.Errorf("the crawl has faults: %s", strings.Join(faults, ", "))
	}
	return nil
}

// Faults returns the faults of the crawl.
func Faults(s *synthweb.Score, delay time.Duration) []string {
	return append(coverageFaults(s), politenessFaults(s, delay)...)
}

// coverageFaults returns the faults in what was fetched.
func coverageFaults(s *synthweb.Score) []string {
	return slices.Concat(countFault(int64(s.Missing), "missing"),
		countFault(int64(s.Beyond)+s.Unknown, "that should not have been fetched"),
		countFault(s.Forbidden, "forbidden by robots.txt"), countFault(s.BeforeRobots, "before robots.txt"))
}

func countFault(n int64, what string) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d %s", n, what)}
}

// politenessFaults returns the faults in when hosts received requests. The servers measure delays on a loaded machine,
// so it allows some tolerance.
func politenessFaults(s *synthweb.Score, delay time.Duration) []string {
	faults := slices.Concat(countFault(s.Hasty+s.Impatient, "sooner than asked for"),
		countFault(int64(max(s.MostInFlight.Value-1, 0)), "too many at once"))
	if s.LeastGap.Host != "" && s.LeastGap.Value < delay*9/10 {
		faults = append(faults, fmt.Sprintf("only %v between two requests to %s", s.LeastGap.Value, s.LeastGap.Host))
	}
	return faults
}

// demoMark is a file that identifies the folder of a demo.
const demoMark = "made-by-kumo-cluster-demo"

// A FolderError names a folder that no demo created.
type FolderError string

func (e FolderError) Error() string {
	return string(e) + " exists, and was not created by a demo: name another folder with --out"
}

// clearDemo creates the demo's folder, or empties it.
func clearDemo(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == demoMark }) {
		return FolderError(dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, demoMark), nil, 0o644)
}
