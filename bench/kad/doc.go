// Package kad compares kumo's Kademlia with libp2p's: the routing table and arithmetic of go-libp2p-kad-dht v0.42.1,
// which are in go-libp2p-kbucket v0.9.0. It is a separate module, so that kumo depends on neither.
//
//	go test -C bench/kad
package kad
