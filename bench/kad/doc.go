// Package kad holds kumo's Kademlia against that of libp2p: the routing table and the arithmetic of
// go-libp2p-kad-dht v0.42.1, which are in go-libp2p-kbucket v0.9.0. It is a module of its own, so that kumo depends on
// neither.
//
//	go test -C bench/kad
package kad
