package cluster

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"kumo/internal/app/admin"
	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/p2p"
)

// openMesh connects to the crawl of nodes without a centre.
func openMesh(ctx context.Context, crawl string, o *NodeOptions) (admin.Client, error) {
	m, err := p2p.Open(p2p.Config{Name: p2p.Guest, Crawl: node.CrawlWord(crawl), Secret: o.Secret,
		Log: func(s string) { o.Log.Debug(s) }})
	if err != nil {
		return nil, err
	}
	nodes, err := m.Dial(ctx, o.Join...)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return admin.NewMesh(m, nodes, m.Close), nil
}

// isMesh reports whether one of some addresses is that of a node without a centre, by how who listens there speaks.
func isMesh(ctx context.Context, join []string) bool {
	found := make(chan bool, len(join))
	for _, a := range join {
		go func() { found <- speaksMesh(ctx, a) }()
	}
	is := false
	for range join {
		is = <-found || is
	}
	return is
}

// greetTime is how long a node has to greet.
const greetTime = time.Second

// speaksMesh reports whether who listens at an address greets as libp2p does.
func speaksMesh(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	conn.SetDeadline(end)
	const greeting = "\x13/multistream/1.0.0\n"
	if _, err := conn.Write([]byte(greeting)); err != nil {
		return false
	}
	answer := make([]byte, len(greeting))
	for n := 0; n < len(answer); {
		k, err := conn.Read(answer[n:])
		if n += k; err != nil {
			return false
		}
	}
	return bytes.Equal(answer, []byte(greeting))
}
