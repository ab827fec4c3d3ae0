package natsbus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// A ServerState is the state of one of the cluster's servers, as known to the leaders of registry and logs.
type ServerState struct {
	Address string
	Leads   bool   // it is the leader of the registry
	Online  bool   // the leaders reach it
	Current bool   // it has all entries of registry and logs
	Lag     uint64 // entries that it lacks, as far as known
}

// Servers returns the states of the cluster's servers by address. A single server has no entry for others.
func (c *Cluster) Servers(ctx context.Context) ([]ServerState, error) {
	if c.cfg.NATS != "" {
		return nil, fmt.Errorf("the cluster uses an existing NATS: %w", ErrNotOwnServers)
	}
	all := map[string]*ServerState{}
	for i, s := range []stream{c.names.registry(), c.names.logs()} {
		st, err := c.js.Stream(ctx, s.name)
		if err != nil {
			return nil, fmt.Errorf("read the state of the servers: %w", unavailable(withDescription(err)))
		}
		info := st.CachedInfo()
		for address := range strings.SplitSeq(info.Config.Metadata[metaServers], ", ") {
			if i == 0 {
				all[address] = &ServerState{Address: address, Online: true, Current: true}
			}
		}
		if info.Cluster != nil {
			addPeers(all, info.Cluster, i == 0)
		}
	}
	return sortedStates(all), nil
}

func addPeers(all map[string]*ServerState, info *jetstream.ClusterInfo, registry bool) {
	seen := map[string]bool{serverAddress(info.Leader): true}
	if s := all[serverAddress(info.Leader)]; s != nil && registry {
		s.Leads = true
	}
	for _, peer := range info.Replicas {
		address := serverAddress(peer.Name)
		seen[address] = true
		if s := all[address]; s != nil {
			s.Online, s.Current = s.Online && !peer.Offline, s.Current && peer.Current && !peer.Offline
			s.Lag = max(s.Lag, peer.Lag)
		}
	}
	for address, s := range all {
		if len(info.Replicas) > 0 && !seen[address] {
			s.Online, s.Current = false, false
		}
	}
}

func sortedStates(all map[string]*ServerState) (states []ServerState) {
	for _, address := range slices.Sorted(maps.Keys(all)) {
		states = append(states, *all[address])
	}
	return states
}

// serverAddress returns the address in a server's name.
func serverAddress(name string) string { return name[strings.LastIndexByte(name, '@')+1:] }
