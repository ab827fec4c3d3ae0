package p2p

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	manet "github.com/multiformats/go-multiaddr/net"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/strategy"
)

// processVar has the settings of a node in a process of its own, on a host of a lab.
const processVar = "KUMO_TEST_P2P_NODE"

type processSettings struct {
	Name, Secret, Dir string
	Listen            []string
	Reach             Reach
	LAN               bool
}

// process runs such a node. It executes the lines of its input, and reports events as lines.
func process(settings string, in io.Reader, out io.Writer) int {
	var s processSettings
	if err := json.Unmarshal([]byte(settings), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	key, err := secret.Parse(s.Secret)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	manet.Unroutable4 = nil // networks for documentation count as public
	var one sync.Mutex
	tell := func(what string, v any) {
		one.Lock()
		defer one.Unlock()
		data, _ := json.Marshal(v)
		fmt.Fprintln(out, what, string(data))
	}
	m, err := Open(Config{Name: s.Name, Crawl: "test", Secret: key, Dir: s.Dir, Listen: s.Listen, Reach: s.Reach,
		LAN:     s.LAN,
		Reached: func(n strategy.Node) { tell("reached", n) },
		Lost:    func(n strategy.Node) { tell("lost", n) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer m.Close()
	tell("open", m.Self())
	go func() {
		_ = m.Receive(context.Background(), func(from strategy.Node, data []byte) {
			tell("got", []string{string(from), string(data)})
		})
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "dial":
			nodes, err := m.Dial(context.Background(), strings.Fields(rest)...)
			tell("dialled", []any{nodes, fmt.Sprint(err)})
		case "learn":
			var c Contact
			_ = json.Unmarshal([]byte(rest), &c)
			m.Learn(c)
		case "send":
			to, text, _ := strings.Cut(rest, " ")
			_ = m.Send(strategy.Node(to), []byte(text))
		case "self":
			tell("self", m.Self())
		case "stats":
			tell("stats", m.Stats())
		}
	}
	return 0
}
