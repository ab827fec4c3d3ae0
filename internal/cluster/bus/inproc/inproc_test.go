package inproc_test

import (
	"testing"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/strategy"
)

func TestContract(t *testing.T) {
	hub := inproc.New(1)
	bustest.Run(t, func(t *testing.T, node strategy.Node) bus.Bus { return join(t, hub, node) })
}

func join(t *testing.T, hub *inproc.Hub, node strategy.Node) *inproc.Bus {
	t.Helper()
	b, err := hub.Join(node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}
