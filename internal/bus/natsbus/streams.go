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

// makeStreams makes the registry and the logs if they are not there yet, and waits until they can be written.
func (c *Cluster) makeStreams(ctx context.Context) error {
	most := time.Second // of an attempt: while there is no leader nobody answers; but who is far away needs longer
	err := c.patiently(ctx, func() error {
		err := c.tryStreams(ctx, most)
		most = min(2*most, c.cfg.Timings.Request)
		if err == nil || c.cfg.NATS != "" {
			return err
		}
		return errors.Join(c.cfg.probeAll(ctx), err) // it may be because of who does not answer
	})
	if err != nil {
		return fmt.Errorf("make the registry ready: %w", err)
	}
	return nil
}

// tryStreams does one attempt, and ends it in time.
func (c *Cluster) tryStreams(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for _, s := range []jetstream.StreamConfig{c.registryConfig(), c.logsConfig()} {
		if err := c.makeStream(ctx, s); err != nil {
			return fmt.Errorf("make %s: %w", s.Name, err)
		}
	}
	for _, mark := range []string{c.names.registryMark(), c.names.logMark()} {
		if _, err := c.mark(ctx, mark); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func (c *Cluster) makeStream(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) && (c.server != nil || c.cfg.NATS != "") {
		stream, err = c.js.CreateStream(ctx, want)
	}
	if c.cfg.NATS != "" && lacksJetStream(err) {
		return forGood{&AddressError{c.conn.ConnectedUrlRedacted(), ErrNoJetStream}}
	}
	if err != nil {
		return err
	}
	return sameStream(stream.CachedInfo().Config, want)
}

// lacksJetStream reports that a server that runs already has nobody who answers for JetStream.
func lacksJetStream(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

// sameStream says why a stream cannot be used.
func sameStream(is, want jetstream.StreamConfig) error {
	if is.MaxMsgsPerSubject != want.MaxMsgsPerSubject || !is.AllowDirect || !slices.Equal(is.Subjects, want.Subjects) ||
		(is.RePublish == nil) != (want.RePublish == nil) {
		return forGood{fmt.Errorf("there is a stream %s that is not kumo's", want.Name)}
	}
	a, b := is.Metadata[metaServers], want.Metadata[metaServers]
	if a != b && a != "" && b != "" && strings.Contains(a+b, ",") { // a single server may have moved
		return forGood{fmt.Errorf("%w: %s; this node was told %s", ErrServers, a, b)}
	}
	return nil
}

// metaServers is where a stream keeps with which servers its cluster was made.
const metaServers = "kumo.servers"

// forGood is an error that no waiting will change.
type forGood struct{ error }

func (e forGood) Unwrap() error { return e.error }

func isForGood(err error) bool {
	var e forGood
	return errors.As(err, &e)
}

func (c *Cluster) registryConfig() jetstream.StreamConfig {
	s := c.streamConfig(c.names.registry(), c.names.allRegistry())
	s.MaxMsgsPerSubject = 1
	s.RePublish = &jetstream.RePublish{Source: c.names.allRegistry(), Destination: c.names.news()}
	return s
}

func (c *Cluster) logsConfig() jetstream.StreamConfig {
	return c.streamConfig(c.names.logs(), c.names.allLogs())
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
