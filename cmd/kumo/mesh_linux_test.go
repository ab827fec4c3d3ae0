package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// newMeshLab returns a lab for nodes without servers, which the test adds.
func newMeshLab(t *testing.T, name string) *labCluster {
	t.Helper()
	c := newLabCluster(t, name, 1, "mesh", 0, 0)
	// A node may own only a quarter of the hosts: of 40 hosts it has none once in 100,000 runs, of 12 once in 20.
	c.serve(synthweb.Clean(1, 40, 240))
	return c
}

// addNode adds a node that starts with the crawl.
func (c *labCluster) addNode(h *netlab.Host, at string, finds ...string) *clusterNode {
	n := &clusterNode{name: h.Name, host: h, dir: c.dir + "/" + h.Name, at: at, finds: finds}
	c.nodes = append(c.nodes, n)
	c.first++
	return n
}

// wantDone waits until all nodes have ended because the crawl is done, and checks the result.
func (c *labCluster) wantDone() {
	c.Helper()
	for began := time.Now(); len(c.lookAfter()) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			c.Error("the crawl is not done")
			break
		}
	}
	c.stop(!c.Failed())
	c.server.Close()
	if score := c.server.Score(); score.Missing > 0 || score.Beyond > 0 || score.Forbidden > 0 || score.Unknown > 0 {
		c.Errorf("the servers saw:\n%s", score)
	}
	e := &evidence{log: c.server.Log(), delay: clusterDelay}
	c.wantPolite(e)
	c.wantRecords(e, c.web.Truth(synthweb.TruthOptions{}))
	for _, n := range c.nodes {
		if !slices.ContainsFunc(e.log, func(r synthweb.Request) bool { return r.Client == n.seenAs() }) {
			c.Errorf("%s has fetched nothing", n.name)
		}
	}
}

// seenAs returns the address from which a node's requests reach the web.
func (n *clusterNode) seenAs() netip.Addr {
	if n.router != nil {
		return n.router.Addr()
	}
	return n.host.Addr()
}

// Two nodes at home, each behind a router, and a public node crawl a web together. The two have only the public node's
// address, and find each other through it. It relays for them, and where the routers allow it they connect directly.
func TestNodesBehindRouters(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("SKIPPED: no nft:", err)
	}
	for name, ports := range map[string]string{"ports that stay": "", "random ports": netlab.RandomPorts} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crawlFromHomes(t, ports)
		})
	}
}

func crawlFromHomes(t *testing.T, ports string) {
	c := newMeshLab(t, "homes"+ports)
	public := c.lab.Add(t, "public")
	const entrance = "11.0.0.1:7070" // in a network that counts as public; no packet leaves the lab
	c.addNode(public, entrance, "--no-lan", "--reach", "public")
	for i, h := range []*netlab.Host{public, c.desk, c.lab.Add(t, "ra"), c.lab.Add(t, "rb")} {
		if err := h.AddAddress(netip.MustParsePrefix(fmt.Sprintf("11.0.0.%d/24", i+1))); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			continue
		}
		home, err := c.lab.Behind(h, h.Name[1:], ports)
		if err != nil {
			t.Fatal(err)
		}
		c.addNode(home, "", "--no-lan", "--reach", "private", "--join", entrance).router = h
	}
	c.launch()
	// a node whose first reservation with its relay fails requests another after a minute
	c.until(3*time.Minute, "are not all connected", func(is *labStatus) bool {
		connected := 0
		for _, n := range is.Nodes {
			if n.Peering != nil && n.Peering.Peers >= 2 {
				connected++
			}
		}
		return connected == c.first
	})
	c.order(clusterDelay)
	c.wantDone()
}

// Two nodes in one local network find each other without a given address. A node that returns without searching the
// network finds the other at its saved address.
func TestNodesOfOneLocalNetwork(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	c := newMeshLab(t, "local")
	for _, name := range []string{"a", "b"} {
		c.addNode(c.lab.Add(t, name), "").finds = []string{}
	}
	c.begin(clusterDelay)
	c.settle(20 * time.Second)
	a := c.nodes[0]
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	a.finds = []string{"--no-lan"}
	if err := c.start(a); err != nil {
		t.Fatal(err)
	}
	c.settle(20 * time.Second)
	c.wantDone()
}
