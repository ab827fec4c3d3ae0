package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
)

// hasty has short timeouts.
var hasty = []kgo.Opt{kgo.RetryBackoffFn(func(int) time.Duration { return time.Millisecond }),
	kgo.RetryTimeout(time.Second),
	kgo.MetadataMinAge(10 * time.Millisecond), kgo.MetadataMaxAge(time.Second)}

// open connects to all brokers through one address, whatever they advertise.
func open(ctx context.Context, addr, rest string) (sink.Sink, error) {
	u, err := sink.Parse("kafka://" + addr + rest)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, u, append(hasty, kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}))...)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func member(addr string) sinktest.Suite {
	return sinktest.Suite{Addr: addr, Fields: func(t *testing.T, place, of string) []byte {
		reader, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(place))
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for {
			fetched := reader.PollFetches(ctx)
			if err := fetched.Err(); err != nil {
				t.Fatal(err)
			}
			for at := fetched.RecordIter(); !at.Done(); {
				var value struct{ Fields json.RawMessage }
				if m := at.Next(); string(m.Key) == of {
					if err := json.Unmarshal(m.Value, &value); err != nil {
						t.Fatal(err)
					}
					return value.Fields
				}
			}
		}
	}, Open: func(ctx context.Context, addr, place string) (sink.Sink, error) {
		return open(ctx, addr, "/"+place)
	}}
}

func TestContract(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_KAFKA"))
	if err != nil {
		t.Fatal(err)
	}
	sinktest.Run(t, member(at.Host))
}

func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestContractOfAFake(t *testing.T) { sinktest.Run(t, member(fake(t).ListenAddrs()[0])) }

// If brokers reject messages at random, all are delivered in the end, in order.
func TestRefusals(t *testing.T) {
	c := fake(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 2))
	c.ControlKey(int16(kmsg.Produce), func(ask kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if dice.IntN(3) > 0 {
			return nil, nil, false
		}
		req := ask.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range req.Topics {
			out := kmsg.NewProduceResponseTopic()
			out.Topic, out.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				x := kmsg.NewProduceResponseTopicPartition()
				x.Partition, x.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				out.Partitions = append(out.Partitions, x)
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp, nil, true
	})
	s, err := open(t.Context(), c.ListenAddrs()[0], "/pages")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	retry := sink.Retry{Sink: s, Now: time.Now, Wait: func(ctx context.Context, _ time.Duration) error {
		return ctx.Err()
	}}
	for i := range 300 {
		if i%30 == 0 {
			var batch []sink.Record
			for n := range 30 {
				batch = append(batch, sinktest.Record(i+n))
			}
			if err := retry.Put(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	if versions, _ := sinktest.Contents(t, s); len(versions) != 300 {
		t.Errorf("%d messages", len(versions))
	}
}

func TestMessages(t *testing.T) {
	c := fake(t)
	s, err := open(t.Context(), c.ListenAddrs()[0], "/pages")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := sinktest.Record(3)
	if err := s.Put(t.Context(), []sink.Record{want}); err != nil {
		t.Fatal(err)
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("pages"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	m := reader.PollFetches(t.Context()).Records()[0]
	var got sink.Record
	if err := json.Unmarshal(m.Value, &got); err != nil || got.Title != want.Title || string(m.Key) != want.URL ||
		!versionOf(m).Equal(want.Time) {
		t.Errorf("%s: %s, %v", m.Key, m.Value, err)
	}
}

func TestErrors(t *testing.T) {
	c := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "hush"))
	addr := c.ListenAddrs()[0]
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	u, _ := sink.Parse(fmt.Sprintf("kafka://me:wrong-one@%s/pages", addr))
	_, err := Open(ctx, u, hasty...)
	sinktest.CheckError(t, err, "wrong-one", addr, "xxxxx")
	// the fake server closes the connection
	for _, code := range []error{kerr.SaslAuthenticationFailed, kerr.TopicAuthorizationFailed, kerr.MessageTooLarge} {
		err := (&Sink{at: u.Redacted()}).explain("write to", code)
		if sinktest.CheckError(t, err, "wrong-one"); sink.IsTemporary(err) {
			t.Errorf("%v is taken for one that is over soon", err)
		}
	}
	t.Setenv("KUMO_SINK_PASSWORD", "hush")
	u, _ = sink.Parse(fmt.Sprintf("kafka://me@%s/pages?sasl=plain", addr))
	if s, err := Open(ctx, u, hasty...); err != nil {
		t.Error(err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"kafka://me:hush@h", "kafka://me:hush@h/a/b", "kafka://me:hush@h/a?b=c",
		"kafka://me:hush@h/a?sasl=x"} {
		u, _ := sink.Parse(bad)
		_, err := Open(ctx, u, hasty...)
		sinktest.CheckError(t, err, "hush", strings.TrimPrefix(u.Redacted(), "kafka://"))
	}
}

// The broker has a second listener with TLS and SASL.
func TestSecured(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_KAFKA"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(kind, func(t *testing.T) {
			sinktest.RunTLS(t, func(ctx context.Context, ca, password, place string) (sink.Sink, error) {
				query := url.Values{"sasl": {kind}}
				if ca != "" {
					query.Set("ca", ca)
				}
				u := url.URL{Scheme: "kafka+tls", User: url.UserPassword(sinktest.User, password), Host: at.Hostname() + ":9094",
					Path: "/" + place, RawQuery: query.Encode()}
				s, err := Open(ctx, &u, hasty...)
				if err != nil {
					return nil, err
				}
				return s, nil
			})
		})
	}
}
