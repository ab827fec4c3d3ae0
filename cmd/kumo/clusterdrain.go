package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
)

const drainLong = `Have a node of a crawl hand over its hosts and queues to the other nodes, leave, and end, as after
SIGTERM on its machine. Its records stay in its folder. No URL is lost, and none is fetched twice.

The command prints the progress until the node has left. If it is interrupted, the node continues to
leave. A node that runs one of the cluster's servers ends with its server: the command refuses this
unless a majority of the servers remains. A supervisor that always restarts the process makes it a
new node; disable the service before.`

// A maintenance is a command that changes the nodes or servers of a running cluster.
type maintenance struct {
	clusterFlags
	limit   time.Duration
	out     io.Writer
	control admin.Client
	ctx     context.Context // ends with the user's interrupt
}

func (m *maintenance) bind(cmd *cobra.Command, limit time.Duration, what string) {
	m.bindCommand(cmd.Flags())
	durationVar(cmd.Flags(), &m.limit, "timeout", limit, what)
	cmd.Flags().SortFlags = false
}

// run connects to the cluster and calls f, which may take longer than an answer of the cluster.
func (m *maintenance) run(cmd *cobra.Command, f func() error) error {
	m.out, m.ctx = cmd.OutOrStdout(), cmd.Context()
	return m.clusterFlags.control(cmd.Context(), cmd.ErrOrStderr(), func(_ context.Context, control admin.Client) error {
		m.control = control
		return cluster.Advise(f())
	})
}

// call calls f with a timeout for an answer of the cluster.
func (m *maintenance) call(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(m.ctx, m.wait)
	defer cancel()
	return f(ctx)
}

func (m *maintenance) status() (all *inspect.Cluster, err error) {
	err = m.call(func(ctx context.Context) (err error) { all, err = m.control.Cluster(ctx, m.crawl); return err })
	return all, err
}

func (m *maintenance) servers() (all []admin.Server, err error) {
	err = m.call(func(ctx context.Context) (err error) { all, err = m.control.Servers(ctx); return err })
	return all, err
}

// poll calls f each second until it returns true. While servers elect a leader, f may fail.
func (m *maintenance) poll(what string, f func() (done bool, err error)) error {
	began := time.Now()
	for now := range wait.Every(m.ctx, time.Second) {
		done, err := f()
		switch {
		case done:
			return nil
		case err != nil && !errors.Is(err, bus.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded):
			return err
		case now.Sub(began) > m.limit:
			return fmt.Errorf("%s: not done after %v", what, m.limit)
		}
	}
	return context.Cause(m.ctx)
}

func clusterDrain() *cobra.Command {
	m := &maintenance{}
	cmd := &cobra.Command{Use: "drain NODE --crawl NAME", Short: "Have a node hand over its hosts, leave and end",
		Long: drainLong, Example: "  kumo cluster drain b --crawl news --join a.internal:7070 --secret-file cluster.secret",
		Args: cobra.ExactArgs(1), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd, func() error {
				n, err := m.findMember(args[0])
				if err != nil {
					return err
				}
				if n.Server != "" {
					if err := m.checkMajority(n.Server); err != nil {
						return fmt.Errorf("drain %s, which runs the server %s: %w", n.Name, n.Server, err)
					}
				}
				return m.drain(n)
			})
		}}
	m.bind(cmd, 10*time.Minute, "report an error if the node has not left after this time; it continues to leave")
	return cmd
}

// findMember returns the member with a name, if there is another member that can take over its hosts.
func (m *maintenance) findMember(name string) (found *inspect.Node, err error) {
	all, err := m.status()
	if err != nil {
		return nil, err
	}
	found = findNode(all.Nodes, func(n *inspect.Node) bool { return n.Name == name || n.Node == name })
	others := 0
	for i := range all.Nodes {
		if n := &all.Nodes[i]; n != found && n.Is == inspect.NodeMember {
			others++
		}
	}
	switch {
	case found == nil:
		return nil, fmt.Errorf("drain %s: the crawl %q has no node of this name; it has %s", name, m.crawl, nodeNames(all))
	case found.Is == inspect.NodeLeaving:
		return found, nil
	case found.Is != inspect.NodeMember:
		return nil, advice.With(fmt.Errorf("drain %s: the node is not a member, but %s", name, found.Is),
			"end its process: it has no hosts to hand over")
	case others == 0:
		return nil, fmt.Errorf("drain %s: no other member could take over its hosts; kumo stop ends the crawl", name)
	case all.State != "running" && all.State != "paused":
		return nil, fmt.Errorf("drain %s: the crawl is %s", name, all.State)
	}
	return found, nil
}

// findNode returns a node that meets a condition, nil if there is none. Nodes that left or died may have had the same
// name and server: it prefers a member, then a leaving node.
func findNode(all []inspect.Node, is func(*inspect.Node) bool) (found *inspect.Node) {
	preferred := []inspect.NodeRole{inspect.NodeLeaving, inspect.NodeMember}
	rank := func(n *inspect.Node) int { return slices.Index(preferred, n.Is) }
	for i := range all {
		if n := &all[i]; is(n) && (found == nil || rank(n) > rank(found)) {
			found = n
		}
	}
	return found
}

func nodeNames(all *inspect.Cluster) string {
	var names []string
	for i := range all.Nodes {
		names = append(names, all.Nodes[i].Name)
	}
	return strings.Join(names, ", ")
}

// checkMajority returns an error if too few servers would remain without one.
func (m *maintenance) checkMajority(without string) error {
	all, err := m.servers()
	if err != nil {
		return err
	}
	left := 0
	var bad []string
	for _, s := range all {
		switch {
		case s.Address == without:
		case s.Current:
			left++
		default:
			bad = append(bad, s.Address+" is "+serverState(s))
		}
	}
	switch {
	case 2*left > len(all):
		return nil
	case len(all) == 1:
		return errors.New("it is the cluster's only server, and the others could not continue")
	}
	return fmt.Errorf("a majority of the %d servers has to remain: %s", len(all), strings.Join(bad, ", "))
}

// drain asks a member to leave, and prints the progress until it has left.
func (m *maintenance) drain(n *inspect.Node) error {
	hosts, urls := n.Hosts, n.Waiting
	if err := m.call(func(ctx context.Context) error { return m.control.Drain(ctx, n.Node) }); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "%s: leaving, with %s and %s in the queue\n", n.Name, stats.Count(hosts, "hosts"),
		stats.Count(urls, "URLs"))
	last := -1
	err := m.poll("drain "+n.Name, func() (bool, error) {
		all, err := m.status()
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(all.Nodes, func(o inspect.Node) bool { return o.Node == n.Node })
		if i < 0 || all.Nodes[i].Is == inspect.NodeLeft {
			return true, nil
		}
		if is := &all.Nodes[i]; is.Is == inspect.NodeDead {
			return false, fmt.Errorf("drain %s: it died while it was leaving; the others take over its hosts", n.Name)
		} else if is.Hosts != last {
			last = is.Hosts
			fmt.Fprintf(m.out, "%s: %s left\n", n.Name, stats.Count(is.Hosts, "hosts"))
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	// The request only concerns this identity, so that it is harmless if it stays.
	_ = m.call(func(ctx context.Context) error { return m.control.ForgetDrain(ctx, n.Node) })
	_, err = fmt.Fprintf(m.out, "%s: has left; the other nodes have its hosts\n", n.Name)
	return err
}

const serversLong = `List the cluster's servers: which one leads, and whether each has what the leader has.

  leader    it orders all writes
  current   it has what the leader has
  behind    it is reached, and lacks the number of entries in the column lag
  offline   the leader does not reach it

The crawl continues while a majority is current.`

func clusterServerList() *cobra.Command {
	m := &maintenance{}
	cmd := &cobra.Command{Use: "servers --crawl NAME", Short: "List the cluster's servers and their state",
		Long: serversLong, Example: "  kumo cluster servers --crawl news --join a.internal:7070", Args: cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.run(cmd, func() error {
				all, err := m.servers()
				if err != nil {
					return err
				}
				nodes, err := m.status()
				if err != nil {
					return err
				}
				fmt.Fprintf(m.out, "%-8s %6s  %-24s %s\n", "state", "lag", "server", "node")
				for _, s := range all {
					fmt.Fprintf(m.out, "%-8s %6d  %-24s %s\n", serverState(s), s.Lag, s.Address, nodeAt(nodes, s.Address))
				}
				return nil
			})
		}}
	m.bindCommand(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

func serverState(s admin.Server) string {
	switch {
	case s.Leads:
		return "leader"
	case s.Current:
		return "current"
	case s.Online:
		return "behind"
	}
	return "offline"
}

func nodeAt(all *inspect.Cluster, server string) string {
	if n := findNode(all.Nodes, func(n *inspect.Node) bool { return n.Server == server }); n != nil {
		return n.Name
	}
	return ""
}

const replaceLong = `Replace one of the cluster's servers, for example because its machine or its disk is replaced.
A server's address is fixed when the cluster is created, so the new machine takes over the address.

  1. The command checks that the other servers have everything: a majority must remain.
  2. If the old server runs, its node is drained, and ends with its server: see kumo cluster drain.
  3. It prints how to start the new node, and waits until the new server has what the others have.

The crawl continues meanwhile. Replace one server at a time: until the command ends, the cluster does
not survive the loss of another server of three.`

func clusterReplace() *cobra.Command {
	m := &maintenance{}
	cmd := &cobra.Command{Use: "replace-server ADDR --crawl NAME", Short: "Replace one of the cluster's servers",
		Long: replaceLong, Args: cobra.ExactArgs(1), DisableFlagsInUseLine: true,
		Example: "  kumo cluster replace-server c.internal:7070 --crawl news --join a.internal:7070,b.internal:7070",
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.run(cmd, func() error { return m.replace(args[0]) })
		}}
	m.bind(cmd, time.Hour, "fail if a step takes longer than this time; the command can be repeated")
	return cmd
}

func (m *maintenance) replace(address string) error {
	all, err := m.servers()
	if err != nil {
		return err
	}
	var list []string
	for _, s := range all {
		list = append(list, s.Address)
	}
	if !slices.Contains(list, address) {
		return usagef("replace %s: the cluster's servers are %s", address, strings.Join(list, ", "))
	}
	if err := m.checkMajority(address); err != nil {
		return fmt.Errorf("replace %s: %w", address, err)
	}
	if err := m.endServer(address); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "%s: the server has ended; start the new node there, with an empty folder:\n"+
		"  kumo node --crawl %s --servers %d --listen %s --join %s\n", address, m.crawl, len(list), address, strings.Join(list, ","))
	last := ""
	return m.poll("replace "+address, func() (bool, error) {
		s, err := m.server(address)
		if err != nil {
			return false, err
		}
		if is := serverState(s); s.Current {
			fmt.Fprintf(m.out, "%s: the new server has what the others have\n", address)
			return true, nil
		} else if s.Online {
			is = fmt.Sprintf("%s by %d entries", is, s.Lag)
			if is != last {
				last = is
				fmt.Fprintf(m.out, "%s: %s\n", address, is)
			}
		}
		return false, nil
	})
}

func (m *maintenance) server(address string) (s admin.Server, err error) {
	all, err := m.servers()
	if i := slices.IndexFunc(all, func(s admin.Server) bool { return s.Address == address }); i >= 0 {
		s = all[i]
	}
	return s, err
}

// endServer drains the node of a server, if it runs, and waits until the server is offline.
func (m *maintenance) endServer(address string) error {
	if s, err := m.server(address); err != nil || !s.Online {
		return err
	}
	all, err := m.status()
	if err != nil {
		return err
	}
	was := ""
	if name := nodeAt(all, address); name != "" {
		n, err := m.findMember(name)
		if err != nil {
			return err
		}
		was = n.Node
		if err := m.drain(n); err != nil {
			return err
		}
	}
	return m.poll("replace "+address+": end the old server", func() (bool, error) {
		if s, err := m.server(address); err != nil || !s.Online {
			return err == nil, err
		}
		all, err := m.status()
		return err == nil && isReplaced(all, address, was), err
	})
}

// isReplaced reports whether another node than was runs the server at an address: it may have started at once.
func isReplaced(all *inspect.Cluster, address, was string) bool {
	return slices.ContainsFunc(all.Nodes, func(n inspect.Node) bool { return n.Server == address && n.Node != was })
}
