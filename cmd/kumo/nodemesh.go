package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/cluster/member/mesh"
)

// paperOnly, meshOnly and serverOnly are flags of kumo node that apply only to mesh/paper, only to mesh, or only to the
// other strategies.
var (
	paperOnly  = []string{"block-size", "balance-every", "work-area"}
	meshOnly   = []string{"backups", "reach", "no-lan", "lost-after", "allow-private"}
	serverOnly = map[string]string{
		"servers": "no node runs a server",
		"nats":    "no server is needed",
		"slots":   "the number of nodes is not limited",
		"preset":  "nodes measure the network themselves",
	}
)

// minLostAfter is the minimum of --lost-after.
const minLostAfter = 10 * time.Second

// checkNoMesh rejects flags that need strategy mesh.
func (n *nodeRunner) checkNoMesh() error {
	if n.given.Changed("share-cookies") {
		return usagef("--share-cookies is for --strategy mesh, and this is %s, where a host's cookies always move with it: "+
			"remove it", n.place)
	}
	for _, name := range meshOnly {
		if n.given.Changed(name) {
			return usagef("--%s is for --strategy mesh, and this is %s", name, n.place)
		}
	}
	return n.checkNoPaper()
}

// checkNoPaper rejects flags that need strategy mesh/paper.
func (n *nodeRunner) checkNoPaper() error {
	for _, name := range paperOnly {
		if n.given.Changed(name) {
			return usagef("--%s is for --strategy %s, and this is %s", name, mesh.StrategyPaper, n.place)
		}
	}
	return nil
}

// checkPaper checks the flags of strategy mesh/paper.
func (n *nodeRunner) checkPaper() error {
	m, given := &n.mesh, n.given.Changed
	switch {
	case n.place != mesh.StrategyPaper:
		return n.checkNoPaper()
	case given("block-size") && (m.blockSize < 1 || m.blockSize > mesh.MaxBlock):
		return usagef("--block-size is %d: 1 to %d are possible", m.blockSize, mesh.MaxBlock)
	case given("balance-every") && (m.balanceEvery < mesh.MinInterval || m.balanceEvery > mesh.MaxInterval):
		return usagef("--balance-every is %v: %v to %v are possible", m.balanceEvery, mesh.MinInterval, mesh.MaxInterval)
	case given("work-area") && (m.workArea < 1 || m.workArea > mesh.MaxBlock):
		return usagef("--work-area is %d: 1 to %d are possible", m.workArea, mesh.MaxBlock)
	}
	return nil
}

func (n *nodeRunner) resolveMesh() (o cluster.NodeOptions, err error) {
	for name, why := range serverOnly {
		if n.given.Changed(name) {
			return o, usagef("--%s: with --strategy mesh %s: remove it", name, why)
		}
	}
	if n.mesh.backups < 1 || n.mesh.backups > cluster.MaxBackups {
		return o, usagef("--backups is %d: 1 to %d are possible", n.mesh.backups, cluster.MaxBackups)
	}
	if n.mesh.lostAfter < minLostAfter {
		return o, usagef("--lost-after is %v: the minimum is %v, because a restarting node is away for a while",
			n.mesh.lostAfter, minLostAfter)
	}
	if err := n.checkPaper(); err != nil {
		return o, err
	}
	o = cluster.NodeOptions{Name: n.name, Listen: n.listen, Join: n.join, Strategy: n.place, Backups: n.mesh.backups,
		Reach: n.mesh.reach, LAN: !n.mesh.noLAN, LostAfter: n.mesh.lostAfter, BlockSize: n.mesh.blockSize,
		BalanceEvery: n.mesh.balanceEvery, WorkArea: n.mesh.workArea, ShareCookies: n.mesh.shareCookies}
	return o, n.checkRest()
}

// blockPrivate keeps a node from private addresses that only other members of a mesh ask for: any member may send seeds
// and settings, and this node's network is not theirs. Without a secret, all nodes are on this machine, and it does
// nothing.
func (n *nodeRunner) blockPrivate(j *job.Job, o *cluster.NodeOptions) {
	if cluster.IsMesh(n.place) && !o.Secret.IsZero() && !n.mesh.private {
		j.Fetch.AllowPrivate, j.Fetch.OnlyPublic = false, true
	}
}

// listenMesh chooses the default listen address: the usual port, or any port if that is taken.
func listenMesh(o *cluster.NodeOptions) {
	if o.Listen != "" {
		return
	}
	host, port, _ := net.SplitHostPort(defaultAddress)
	if !o.Secret.IsZero() {
		host = ""
	}
	o.Listen = net.JoinHostPort(host, port)
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		o.Listen = net.JoinHostPort(host, "0")
		return
	}
	_ = l.Close() // opened only to test whether the port is free
}

func meshHint(o *cluster.NodeOptions) string {
	if len(o.Join) == 0 {
		return "no other node found yet: if there are some, name one with --join"
	}
	return fmt.Sprintf("not joined yet: check that a node runs at %s, the address, the secret, and the firewall (TCP and "+
		"UDP)", strings.Join(o.Join, ", "))
}

func (n *nodeRunner) printMesh(show *console) {
	show.log.Info("pages fetched by this node are only in its folder: back up warc/ regularly", "folder",
		n.out)
	show.log.Info("joining", "crawl", n.crawl, "node", n.name, "strategy", n.place)
}

func (n *nodeRunner) printJoin(w io.Writer, addrs []string) {
	if len(addrs) == 0 || n.o.Quiet {
		return
	}
	line := fmt.Sprintf("kumo node --crawl %s --strategy %s", n.crawl, n.place)
	if n.secretFile != "" {
		line += " --secret-file " + n.secretFile
	}
	if n.mesh.shareCookies {
		line += " --share-cookies"
	}
	fmt.Fprintf(w, "to join, from a machine that reaches one of these addresses:\n  %s --join %s\n", line,
		strings.Join(addrs, ","))
}
