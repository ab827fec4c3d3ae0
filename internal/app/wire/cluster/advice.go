package cluster

import (
	"errors"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/advice"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/catalog"
	"kumo/internal/cluster/desired"
)

// Advice for errors between nodes. The errors themselves are created where they are detected.
var remedies = []struct {
	is error
	do string
}{
	{natsbus.ErrSecret, "copy the secret from a running node and name it with --secret-file or in KUMO_SECRET; or " +
		"check the address"},
	{natsbus.ErrNoSecret, "start all nodes with the same secret, or this one without one"},
	{natsbus.ErrWantsSecret, "name the cluster's secret with --secret-file or in KUMO_SECRET"},
	{natsbus.ErrOtherCrawl, "name that crawl with --crawl, or use other addresses in --listen and --join: " +
		"each server uses two ports, the given one and the next"},
	{natsbus.ErrShared, "start this node without --crawl: it then takes part in all crawls of the cluster"},
	{catalog.ErrUnknown, "kumo status lists the crawls of the cluster; kumo start --crawl NAME URL adds one"},
	{natsbus.ErrNoNodes, "start a node first, with kumo node --nats; or check --crawl and the URL in --nats"},
	{natsbus.ErrNotKumo, "check the address: --join needs that of a node that runs a server"},
	{natsbus.ErrServers, "the nodes with servers are fixed when a cluster is created: give each node the --servers, and " +
		"the first addresses in --join, of that time"},
	{natsbus.ErrNoMajority, "a majority of them must run: restart their nodes with their previous commands and " +
		"folders. Until then nothing is fetched, and nothing is lost; the crawl resumes by itself when they are back"},
	{natsbus.ErrNoLeader, "the servers elect a leader within seconds after a start or a failure: repeat the command, " +
		"or use a longer --wait"},
	{natsbus.ErrNoAnswer, "check the address, the firewall, and that a node with a server runs there; other nodes join " +
		"where the first one listens"},
	{bus.ErrUnavailable, "the servers did not answer in time, so the request may have been executed or not: kumo status " +
		"shows the state, and which servers are down"},
	{p2p.ErrNotMember, "check --crawl, and that --secret-file has the secret of its nodes"},
	{control.ErrNoReply, "they may be overloaded or shutting down: try again, or name other nodes with --join"},
	{desired.ErrState, "kumo status shows the state of the crawl"},
}

// Advise adds advice to an error, if there is any and the error has none yet.
func Advise(err error) error {
	if err == nil || advice.Of(err) != "" {
		return err
	}
	for _, a := range remedies {
		if errors.Is(err, a.is) {
			return advice.With(err, a.do)
		}
	}
	return err
}

// IsNoAnswer reports whether the error means that no server of a cluster answers.
func IsNoAnswer(err error) bool { return errors.Is(err, natsbus.ErrNoAnswer) }

// IsOtherCrawl reports whether the error means that the servers belong to another crawl.
func IsOtherCrawl(err error) bool { return errors.Is(err, natsbus.ErrOtherCrawl) }
