package node

import "kumo/internal/cluster/strategy"

// PlaceKey is where the registry has the place of a node's record files: its URL, with the options by which it is
// reached. There is none where they stay on the node's disk. It goes with the node's log.
func PlaceKey(n strategy.Node) string { return "places/" + string(n) }
