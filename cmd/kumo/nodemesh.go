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

// meshOnly and serverOnly are flags of kumo node that apply only to mesh, or only to the other strategies.
var (
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
	o = cluster.NodeOptions{Name: n.name, Listen: n.listen, Join: n.join, Strategy: n.place, Backups: n.mesh.backups,
		Reach: n.mesh.reach, LAN: !n.mesh.noLAN, LostAfter: n.mesh.lostAfter}
	return o, n.checkRest()
}

// blockPrivate keeps a node from private addresses that only other members of a mesh ask for: any member may send seeds
// and settings, and this node's network is not theirs. Without a secret, all nodes are on this machine, and it does
// nothing.
func (n *nodeRunner) blockPrivate(j *job.Job, o *cluster.NodeOptions) {
	if n.place == "mesh" && !o.Secret.IsZero() && !n.mesh.private {
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
	line := fmt.Sprintf("kumo node --crawl %s --strategy mesh", n.crawl)
	if n.secretFile != "" {
		line += " --secret-file " + n.secretFile
	}
	fmt.Fprintf(w, "to join, from a machine that reaches one of these addresses:\n  %s --join %s\n", line,
		strings.Join(addrs, ","))
}
