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

// A JoinMessenger makes the messenger of one more node of one crawl, which is closed when the test ends. The node has
// the name given; the rest of its identity is the member's to choose. Nodes of one test know of each other.
type JoinMessenger func(t *testing.T, name string) (bus.Messenger, strategy.Node)

// RunMessenger tests the messengers that join makes.
func RunMessenger(t *testing.T, join JoinMessenger) {
	for _, c := range []struct {
		name string
		test func(*testing.T, JoinMessenger)
	}{
		{"messages come", messages},
		{"a message may be as large as may be", largeMessage},
		{"nodes that are none are refused", badNodes},
		{"Receive ends with its context", receiveEnded},
		{"a closed messenger says so", closedMessenger},
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
				t.Error("two messages at a time")
				return
			}
			defer one.Unlock()
			select {
			case got <- string(from) + " " + string(data):
			default: // repetitions that nobody waits for
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

// sendUntilReceived sends a message until it comes: it may be lost.
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
			t.Fatalf("%.80q never came to %s", data, to)
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
		t.Errorf("a message of a byte too much: %v", err)
	}
	cancel()
	wantEnd(t, done)
}

// receive begins to receive. It returns what that ends with.
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
			t.Errorf("a message to %q is taken", node)
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
