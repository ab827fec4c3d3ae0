package main

import (
	"testing"

	"kumo/internal/app/inspect"
)

// Of nodes with the same name or server, the member is meant.
func TestFindNode(t *testing.T) {
	all := []inspect.Node{{Node: "b~1", Name: "b", Server: "s", Is: inspect.NodeDead},
		{Node: "b~2", Name: "b", Is: inspect.NodeMember}, {Node: "b~3", Name: "b", Is: inspect.NodeLeft},
		{Node: "c~1", Name: "c", Server: "s", Is: inspect.NodeLeaving}, {Node: "d~1", Name: "d", Is: inspect.NodeDead}}
	for name, want := range map[string]string{"b": "b~2", "c": "c~1", "d": "d~1", "e": ""} {
		got := ""
		if n := findNode(all, func(n *inspect.Node) bool { return n.Name == name }); n != nil {
			got = n.Node
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := nodeAt(&inspect.Cluster{Nodes: all}, "s"); got != "c" {
		t.Errorf("at s is %q", got)
	}
}
