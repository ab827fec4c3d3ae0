package natsbus

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/lab/testmain"
)

// raw matches text that no user should have to read.
var raw = regexp.MustCompile(`(?i)nats|jetstream|context|err_code|10\d\d\d|no responders|api error`)

// A process that was given one server's address learns how many there are, and which do not answer, and can read what
// the last one has. When one of them is back, everything continues.
func TestAMajorityIsAway(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	s := secret.New()
	servers := three(t, "away", s)
	at := servers[0].cfg.Servers
	w, err := servers[0].Join("writer~1")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"old", "new"} {
		e, err := w.Get(t.Context(), "a/b")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Put(t.Context(), "a/b", []byte(value), e.Revision); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Crawl: "away", Join: at[:1], Secret: s, Timings: Timings{Request: time.Second},
		Log: func(s string) { t.Log(s) }}
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	servers[1].Close()
	servers[2].Close()
	absent := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c.Ready(ctx)
	}
	for tries := 0; tries < 5 && !errors.Is(err, ErrNoMajority); tries++ { // until it is noticed
		err = absent(3 * time.Second)
		t.Log(err)
	}
	text := err.Error()
	if !strings.Contains(text, "2 of the cluster's 3 servers") || !strings.Contains(text, at[1]) ||
		!strings.Contains(text, at[2]) || raw.MatchString(text) {
		t.Errorf("it says: %s", text)
	}
	all, err := c.Peek(t.Context())
	if err != nil || len(all) != 1 || all[0].Key != "a/b" || string(all[0].Value) != "new" {
		t.Errorf("what can be seen: %v, %v", all, err)
	}
	b, err := c.Join("writer~2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "c", nil, 0); !errors.Is(err, bus.ErrUnavailable) || raw.MatchString(err.Error()) {
		t.Errorf("a write: %v", err)
	}
	reopen(t, servers[1].cfg)
	if err := absent(limit); err != nil {
		t.Errorf("with two of three: %v", err)
	}
}

func TestWords(t *testing.T) {
	for _, err := range []error{
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed,
		nats.ErrNoServers,
		nats.ErrAuthorization, nats.ErrStaleConnection, context.DeadlineExceeded, jetstream.ErrNoStreamResponse,
		jetstream.ErrStreamNotFound,
		&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"},
		&jetstream.APIError{Code: 400, ErrorCode: 10074, Description: "replicas > 1 not supported in non-clustered mode"},
	} {
		if text := unavailable(err).Error(); raw.MatchString(text) || text == bus.ErrUnavailable.Error()+": " {
			t.Errorf("%v: %s", err, text)
		} else {
			t.Log(text)
		}
		if !errors.Is(unavailable(err), err) || !errors.Is(unavailable(err), bus.ErrUnavailable) {
			t.Errorf("%v is not found in its words", err)
		}
	}
}
