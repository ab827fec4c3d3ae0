package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// A JoinMessenger returns the messenger of another node of the same crawl. The messenger is closed when the test ends.
// It chooses the node's identity, which has the given name. Nodes of one test know each other's addresses.
type JoinMessenger func(t *testing.T, name string) (bus.Messenger, strategy.Node)

// RunMessenger tests the messengers that join returns.
func RunMessenger(t *testing.T, join JoinMessenger) {
	for _, c := range []struct {
		name string
		test func(*testing.T, JoinMessenger)
	}{
		{"messages arrive", messages},
		{"a message may have the maximum size", largeMessage},
		{"invalid nodes are refused", badNodes},
		{"Receive ends with its context", receiveEnded},
		{"a closed messenger returns ErrClosed", closedMessenger},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, join) })
	}
}

func messages(t *testing.T, join JoinMessenger) {
	a, nodeA := join(t, "talker")
	b, nodeB := join(t, "listener")
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string, 1000)
	listen := func(b bus.Messenger) <-chan error {
		var one sync.Mutex
		return receive(ctx, b, func(from strategy.Node, data []byte) {
			if !one.TryLock() {
				t.Error("two concurrent messages")
				return
			}
			defer one.Unlock()
			select {
			case got <- string(from) + " " + string(data):
			default: // a repetition, which no test waits for
			}
		})
	}
	endA, endB := listen(a), listen(b)
	sendUntilReceived(t, a, nodeB, "hello", got, string(nodeA)+" hello")
	sendUntilReceived(t, b, nodeA, "", got, string(nodeB)+" ")
	sendUntilReceived(t, a, nodeA, "to myself", got, string(nodeA)+" to myself")
	check(t, a.Send("talk~nobody", []byte("x")))
	cancel()
	wantEnd(t, endA)
	wantEnd(t, endB)
}

// sendUntilReceived sends a message, which may be lost, until it arrives.
func sendUntilReceived(t *testing.T, b bus.Messenger, to strategy.Node, data string, got chan string, want string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for late := time.After(timeout); ; {
		check(t, b.Send(to, []byte(data)))
		select {
		case m := <-got:
			if m == want {
				return
			}
		case <-again.C:
		case <-late:
			t.Fatalf("%.80q never arrived at %s", data, to)
		}
	}
}

func largeMessage(t *testing.T, join JoinMessenger) {
	a, _ := join(t, "sender")
	b, to := join(t, "receiver")
	most := bytes.Repeat([]byte("0123456789abcdef"), bus.MaxData/16)
	got := make(chan string, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	done := receive(ctx, b, func(_ strategy.Node, data []byte) {
		select {
		case got <- fmt.Sprint(bytes.Equal(data, most)):
		default:
		}
	})
	sendUntilReceived(t, a, to, string(most), got, "true")
	if err := a.Send(to, append(most, 'x')); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("a message of one byte too much: %v", err)
	}
	cancel()
	wantEnd(t, done)
}

// receive starts to receive. It returns a channel for the result of Receive.
func receive(ctx context.Context, b bus.Messenger, f func(strategy.Node, []byte)) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- b.Receive(ctx, f) }()
	return ended
}

func wantEnd(t *testing.T, receiving <-chan error) {
	t.Helper()
	if err := wait(t, receiving, "the end of Receive"); !errors.Is(err, context.Canceled) {
		t.Errorf("Receive ended with %v", err)
	}
}

func badNodes(t *testing.T, join JoinMessenger) {
	b, _ := join(t, "bad")
	for _, node := range []strategy.Node{"", "a.b", "a/b", "*", "a b"} {
		if b.Send(node, nil) == nil {
			t.Errorf("a message to the invalid node %q is accepted", node)
		}
	}
}

func receiveEnded(t *testing.T, join JoinMessenger) {
	b, _ := join(t, "ended")
	ctx, cancel := context.WithCancel(t.Context())
	receiving := receive(ctx, b, func(strategy.Node, []byte) {})
	cancel()
	wantEnd(t, receiving)
}

func closedMessenger(t *testing.T, join JoinMessenger) {
	b, node := join(t, "closed")
	receiving := receive(t.Context(), b, func(strategy.Node, []byte) {})
	check(t, b.Close())
	wantErrors(t, "of a closed messenger", bus.ErrClosed, map[string]error{
		"Receive": wait(t, receiving, "the end of Receive"), "Send": b.Send(node, nil)})
	check(t, b.Close())
}
