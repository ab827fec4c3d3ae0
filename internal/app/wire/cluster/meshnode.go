package cluster

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session/meshnodes"
	"kumo/internal/app/wire"
	"kumo/internal/base/advice"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

const (
	// DefaultBackups is the default number of nodes that remember a host's URLs.
	DefaultBackups = 3
	// DefaultLostAfter is the default time until a missing node counts as lost with its disk.
	DefaultLostAfter = mesh.DefaultLostAfter
	// MaxBackups is the maximum number of such nodes.
	MaxBackups = 16
)

// Reaches returns the values of NodeOptions.Reach.
func Reaches() []string { return []string{"auto", "public", "private"} }

func parseReach(word string) (p2p.Reach, error) {
	switch word {
	case "", "auto":
		return p2p.ReachUnknown, nil
	case "public":
		return p2p.ReachPublic, nil
	case "private":
		return p2p.ReachPrivate, nil
	}
	return 0, advice.Usage("reach %q: use %s", word, strings.Join(Reaches(), ", "))
}

// openMeshNode creates a node of a mesh crawl.
func openMeshNode(ctx context.Context, j *job.Job, o *NodeOptions) (Node, error) {
	reach, err := parseReach(o.Reach)
	if err != nil {
		return nil, err
	}
	if o.Name == p2p.Guest {
		return nil, advice.Usage("the node name %q is reserved for commands", o.Name)
	}
	cfg := meshnodes.Config{Name: o.Name, Address: o.Address, Browser: o.Browser, Join: o.Join,
		Backups:       cmp.Or(o.Backups, DefaultBackups),
		ApplySettings: o.ApplySettings, Open: wire.OpenPart, NewUploader: o.NewUploader, ReadManifest: o.ReadManifest,
		PlaceWait: o.PlaceWait,
		LostAfter: o.LostAfter, WorkArea: o.WorkArea, Log: o.Log, ShareCookies: o.ShareCookies,
		Terms: mesh.Terms{Strategy: o.Strategy, Block: o.BlockSize, Interval: o.BalanceEvery}}
	cfg.Connect = func(_ context.Context, dir string, reached, lost func(strategy.Node)) (meshnodes.Connection, error) {
		return p2p.Open(p2p.Config{Name: o.Name, Crawl: node.CrawlWord(j.Name), Secret: o.Secret, Dir: dir,
			Listen: splitList(o.Listen), Reach: reach, LAN: o.LAN, Reached: reached, Lost: lost,
			Log: func(s string) { o.Log.Info(s) }})
	}
	n, err := meshnodes.Open(ctx, j, cfg)
	if err != nil {
		return nil, err
	}
	return meshNode{n}, nil
}

func splitList(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// A meshNode also returns the addresses at which other nodes can join it.
type meshNode struct{ *meshnodes.Node }

// Addresses returns addresses for --join of other nodes: those of TCP listeners, as "host:port".
func (n meshNode) Addresses() (all []string) {
	for _, a := range n.Node.Addrs() {
		if short, is := hostPort(a); is && !slices.Contains(all, short) {
			all = append(all, short)
		}
	}
	return all
}

// hostPort converts a TCP multiaddress to "host:port".
func hostPort(multiaddr string) (address string, is bool) {
	p := strings.Split(multiaddr, "/")
	if len(p) < 5 || p[1] != "ip4" && p[1] != "ip6" || p[3] != "tcp" || strings.Contains(multiaddr, "/p2p-circuit") {
		return "", false
	}
	return net.JoinHostPort(p[2], p[4]), true
}
