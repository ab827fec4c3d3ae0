package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// makeStreams creates the registry and the logs if they do not exist, and waits until they can be written.
func (c *Cluster) makeStreams(ctx context.Context) error {
	most := time.Second // timeout of an attempt; it grows for distant servers. Without a leader no server answers
	err := c.retry(ctx, func() error {
		err := c.tryStreams(ctx, most)
		most = min(2*most, c.cfg.Timings.Request)
		if err == nil || isPermanent(err) || c.cfg.NATS != "" || isOver(ctx) {
			return withDescription(err)
		}
		return c.absentError(ctx, err)
	})
	if _, absent := errors.AsType[*AbsentError](err); err == nil || absent {
		return err
	}
	return fmt.Errorf("prepare the registry: %w", err)
}

// absentError returns why an attempt may have failed: an AbsentError with the known servers that do not answer, or a
// permanent error.
func (c *Cluster) absentError(ctx context.Context, err error) error {
	all := c.knownServers(ctx)
	away, wrong := c.cfg.probeAll(ctx, all)
	if wrong != nil {
		return wrong
	}
	return &AbsentError{Servers: len(all), Unreachable: away, err: err}
}

// knownServers returns the addresses of all servers: the configured ones, and those that a server that answers knows.
func (c *Cluster) knownServers(ctx context.Context) []string {
	all := c.cfg.addresses()
	ctx, cancel := context.WithTimeout(ctx, peekTime)
	defer cancel()
	_, _ = c.request(ctx, c.names.registry(), query{Last: []string{c.names.servers()}, Batch: 1}, func(m stored) error {
		all = append(all, strings.Split(string(m.data), ",")...)
		return nil
	}) // if no server answers, the configured addresses must do
	slices.Sort(all)
	return slices.Compact(all)
}

// peekTime is the timeout for a server's own data.
const peekTime = time.Second

// publishServers writes the servers' addresses to the registry, for clients that know only one of them.
func (c *Cluster) publishServers(ctx context.Context) error {
	if c.server == nil || len(c.cfg.Servers) < 2 {
		return nil
	}
	_, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: c.names.servers(), Data: []byte(strings.Join(c.cfg.Servers, ","))},
		jetstream.WithRetryAttempts(0))
	return err
}

// tryStreams makes one attempt with a timeout.
func (c *Cluster) tryStreams(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if c.maxAge > 0 {
		return c.tryAgingStream(ctx)
	}
	for _, s := range []jetstream.StreamConfig{c.registryConfig(), c.logsConfig()} {
		if err := c.makeStream(ctx, s); err != nil {
			return fmt.Errorf("make %s: %w", s.Name, err)
		}
	}
	for _, s := range []stream{c.names.registry(), c.names.logs()} {
		if _, err := c.mark(ctx, s); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if err := c.publishServers(ctx); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (c *Cluster) makeStream(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) && c.creates {
		stream, err = c.js.CreateStream(ctx, want)
	}
	if c.cfg.NATS != "" && lacksJetStream(err) {
		return permanentError{&AddressError{c.conn.ConnectedUrlRedacted(), ErrNoJetStream}}
	}
	if err != nil {
		return err
	}
	return sameStream(stream.CachedInfo().Config, want)
}

// lacksJetStream reports whether an error of an existing server shows that it has no JetStream.
func lacksJetStream(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

// sameStream returns an error if a stream cannot be used.
func sameStream(is, want jetstream.StreamConfig) error {
	if is.MaxMsgsPerSubject != want.MaxMsgsPerSubject || !is.AllowDirect || !slices.Equal(is.Subjects, want.Subjects) ||
		(is.RePublish == nil) != (want.RePublish == nil) {
		return permanentError{fmt.Errorf("stream %s exists and is not kumo's", want.Name)}
	}
	a, b := is.Metadata[metaServers], want.Metadata[metaServers]
	if a != b && a != "" && b != "" && strings.Contains(a+b, ",") { // a single server may have another address now
		return permanentError{fmt.Errorf("%w: %s; this node has %s", ErrServers, a, b)}
	}
	return nil
}

// metaServers is the key of a stream's metadata for the servers with which its cluster was created.
const metaServers = "kumo.servers"

// permanentError wraps an error that waiting cannot resolve.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

func isPermanent(err error) bool {
	_, is := errors.AsType[permanentError](err)
	return is
}

func (c *Cluster) registryConfig() jetstream.StreamConfig {
	s := c.streamConfig(c.names.registry().name, c.names.allRegistry())
	s.MaxMsgsPerSubject = 1
	s.RePublish = &jetstream.RePublish{Source: c.names.allRegistry(), Destination: c.names.updates()}
	return s
}

func (c *Cluster) logsConfig() jetstream.StreamConfig {
	return c.streamConfig(c.names.logs().name, c.names.allLogs())
}

func (c *Cluster) streamConfig(name, subjects string) jetstream.StreamConfig {
	servers := slices.Sorted(slices.Values(c.cfg.Servers))
	return jetstream.StreamConfig{
		Metadata:          map[string]string{metaServers: strings.Join(servers, ", ")},
		Name:              name,
		Subjects:          []string{subjects},
		Storage:           jetstream.FileStorage,
		Replicas:          c.cfg.Replicas,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: -1,
		MaxMsgs:           -1, MaxBytes: -1, MaxConsumers: -1, MaxMsgSize: -1,
		AllowDirect: true, AllowRollup: true,
		Duplicates: time.Second,
	}
}
