package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/cluster"
)

// meshOnly and serverOnly are flags of kumo node that have no meaning with the other kind of strategy.
var (
	meshOnly   = []string{"backups", "reach", "no-lan", "lost-after", "allow-private"}
	serverOnly = map[string]string{
		"servers": "no node runs a server",
		"nats":    "no server is needed",
		"slots":   "there may be any number of nodes",
		"preset":  "nodes find out how far they are from each other",
	}
)

// minLostAfter is the least after which a node may count as lost.
const minLostAfter = 10 * time.Second

// checkNoMesh refuses flags that only a node of a crawl without a centre has.
func (n *nodeRunner) checkNoMesh() error {
	for _, name := range meshOnly {
		if n.given.Changed(name) {
			return usagef("--%s is for --strategy mesh, and this is %s", name, n.place)
		}
	}
	return nil
}

func (n *nodeRunner) resolveMesh() (o cluster.NodeOptions, err error) {
	for name, why := range serverOnly {
		if n.given.Changed(name) {
			return o, usagef("--%s: with --strategy mesh %s: leave it out", name, why)
		}
	}
	if n.mesh.backups < 1 || n.mesh.backups > cluster.MaxBackups {
		return o, usagef("--backups is %d: 1 to %d are possible", n.mesh.backups, cluster.MaxBackups)
	}
	if n.mesh.lostAfter < minLostAfter {
		return o, usagef("--lost-after is %v: %v is the least, as a node that starts again is away for a while",
			n.mesh.lostAfter, minLostAfter)
	}
	o = cluster.NodeOptions{Name: n.name, Listen: n.listen, Join: n.join, Strategy: n.place, Backups: n.mesh.backups,
		Reach: n.mesh.reach, LAN: !n.mesh.noLAN, LostAfter: n.mesh.lostAfter}
	return o, n.checkRest()
}

// blockPrivate keeps a node from private addresses that only other members of a mesh ask for: seeds and settings may come
// from any of them, and this node's network is not theirs. Without a secret all nodes are on this machine.
func (n *nodeRunner) blockPrivate(j *job.Job, o *cluster.NodeOptions) {
	if n.place == "mesh" && !o.Secret.IsZero() && !n.mesh.private {
		j.Fetch.AllowPrivate, j.Fetch.OnlyPublic = false, true
	}
}

// listenMesh chooses where a node listens that was not told: at the usual port, or where that is taken at any.
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
	_ = l.Close() // it was there to see whether it can be
}

func meshHint(o *cluster.NodeOptions) string {
	if len(o.Join) == 0 {
		return "no other node was found yet: name one with --join if there are some"
	}
	return fmt.Sprintf("not joined yet: check that a node runs at %s, the address, the secret, and the firewall (TCP and "+
		"UDP)", strings.Join(o.Join, ", "))
}

func (n *nodeRunner) printMesh(show *console) {
	show.log.Info("what this node fetches lies in its folder alone: copy warc/ to a safe place, now and then", "folder",
		n.out)
	show.log.Info("joining", "crawl", n.crawl, "node", n.name, "strategy", n.place)
}

func (n *nodeRunner) printJoin(w io.Writer, addrs []string) {
	if len(addrs) == 0 || n.o.Quiet {
		return
	}
	line := fmt.Sprintf("kumo node --crawl %s --strategy mesh", n.crawl)
	if n.secretFile != "" {
		line += " --secret-file " + n.secretFile
	}
	fmt.Fprintf(w, "others join with, from a machine that reaches one of these addresses:\n  %s --join %s\n", line,
		strings.Join(addrs, ","))
}
