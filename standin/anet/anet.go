// Package anet is package net's list of network interfaces. The module that it replaces differs from that on Android
// only, for which there is no kumo.
package anet

import "net"

// Interfaces returns net.Interfaces.
func Interfaces() ([]net.Interface, error) { return net.Interfaces() }

// InterfaceAddrsByInterface returns the interface's addresses.
func InterfaceAddrsByInterface(i *net.Interface) ([]net.Addr, error) { return i.Addrs() }
