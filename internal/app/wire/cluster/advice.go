package cluster

import (
	"errors"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/advice"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/natsbus"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/desired"
)

// What a person can do about what goes wrong between nodes. The errors say what is wrong; they are made where it is
// found.
var remedies = []struct {
	is error
	do string
}{
	{natsbus.ErrSecret, "copy the secret from a node that runs, and name it with --secret-file or in KUMO_SECRET; or " +
		"check the address"},
	{natsbus.ErrNoSecret, "start all nodes with the same secret, or this one without"},
	{natsbus.ErrWantsSecret, "name the cluster's secret with --secret-file or in KUMO_SECRET"},
	{natsbus.ErrOtherCrawl, "name that crawl with --crawl, or give this one other addresses with --listen and --join: " +
		"each server takes two ports, the one named and the next"},
	{natsbus.ErrNotKumo, "check the address: --join wants one of a node that runs a server"},
	{natsbus.ErrServers, "which nodes run servers is fixed when a cluster is made: give each node the --servers, and " +
		"the first addresses in --join, that it was made with"},
	{natsbus.ErrNoMajority, "a majority of them must run: start their nodes again, with the commands and folders that " +
		"they had. Until then nobody fetches, and " +
		"nothing is lost; the crawl goes on by itself when they are back"},
	{natsbus.ErrNoLeader, "its servers agree on a leader within some seconds of a start or a loss: give the command " +
		"again, or a longer --wait"},
	{natsbus.ErrNoAnswer, "check that a node with a server runs there, the address, and the firewall; other nodes join " +
		"where the first one listens"},
	{bus.ErrUnavailable, "the servers did not answer in time, so it may have been done or not: kumo status says how it " +
		"is, and which servers are away"},
	{p2p.ErrNotMember, "check --crawl, and that --secret-file has the secret of its nodes"},
	{control.ErrNoReply, "they may be too busy, or just end: try again, or name other nodes with --join"},
	{desired.ErrState, "kumo status says how it is with the crawl"},
}

// Advise adds to an error what a person can do about it, if that is known and nothing is said yet.
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

// IsNoAnswer reports that no server of a cluster answers.
func IsNoAnswer(err error) bool { return errors.Is(err, natsbus.ErrNoAnswer) }
