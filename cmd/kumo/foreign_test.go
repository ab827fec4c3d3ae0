package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/lab/clusterdemo"
)

// addressesCmd finds addresses for servers.
func addressesCmd(ts *testscript.TestScript, _ bool, names []string) {
	all, err := clusterdemo.FreeAddresses(len(names))
	ts.Check(err)
	for i, name := range names {
		ts.Setenv(name, all[i])
	}
}

// natsCmd runs a NATS server that belongs to no node.
func natsCmd(ts *testscript.TestScript, _ bool, args []string) {
	s, err := newNATS("127.0.0.1", server.RANDOM_PORT, ts.MkAbs("nats"))
	ts.Check(err)
	go s.Start()
	ts.Defer(s.Shutdown)
	if !s.ReadyForConnections(20 * time.Second) {
		ts.Fatalf("the NATS server does not start")
	}
	ts.Setenv(args[0], s.ClientURL())
}

func newNATS(host string, port int, dir string) (*server.Server, error) {
	return server.NewServer(&server.Options{Host: host, Port: port, JetStream: true, StoreDir: dir, MaxPayload: 8 << 20,
		NoSigs: true, NoLog: true})
}

// natsProgram is this test binary under the name by which it is a NATS server, at an address and with a folder.
const natsProgram = "nats-of-kumo"

func runNATS() {
	at, err := netip.ParseAddrPort(os.Args[1])
	if err == nil {
		var s *server.Server
		if s, err = newNATS(at.Addr().String(), int(at.Port()), os.Args[2]); err == nil {
			s.Start()
			s.WaitForShutdown()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// foreignCmd writes entries into the registry of the crawl CRAWL, which has a server at JOIN, that no kumo of this
// version and machine would write:
//
//	foreign JOIN CRAWL table LAYOUT         a cluster with another layout
//	foreign JOIN CRAWL lease NAME SECONDS   a node whose clock is ahead
//	foreign JOIN CRAWL settings KEY VALUE   a crawl that was started with an unknown setting
func foreignCmd(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(contextOf(ts), 20*time.Second)
	defer cancel()
	cluster, err := natsbus.Open(ctx, natsbus.Config{Name: "foreign", Crawl: args[1], Join: args[:1]})
	ts.Check(err)
	defer cluster.Close()
	b, err := cluster.Join("foreign~1")
	ts.Check(err)
	var key string
	var value []byte
	switch args[2] {
	case "table":
		key, value = quorum.TableKey, (&quorum.Table{Epoch: 1, Finalized: 1, Layout: args[3]}).Encode()
	case "lease":
		key = quorum.LeasePrefix + args[3] + "~1"
		seconds, err := strconv.Atoi(args[4])
		ts.Check(err)
		report, err := json.Marshal(node.Report{Name: args[3], Version: "0.0.9",
			Clock: time.Now().Add(time.Duration(seconds) * time.Second)})
		ts.Check(err)
		value = (&quorum.Lease{Instance: 1, Beat: 1, Report: report}).Encode()
	case "settings":
		key, value = "crawl", fmt.Appendf(nil, `{"state":"running","settings":{%q:[%q]}}`, args[3], args[4])
	}
	_, err = b.Put(ctx, key, value, 0)
	ts.Check(err)
}
