// Package kafka sends records to Kafka as JSON, one message per record, with the URL as the key.
//
// The producer is idempotent and waits for all replicas. A record that is sent again is a second message, because a log
// replaces nothing. Consumers use the newest message of a key by the header "time" (time of the visit, RFC 3339).
// Topics that kumo creates are compacted, so that the last message of each key remains. The messages of one URL stay in
// order, in one partition.
//
//	kafka://USER:PASSWORD@HOST:9092/TOPIC      plain; with a user, SASL with the mechanism of ?sasl=
//	kafka+tls://USER:PASSWORD@HOST:9093/TOPIC  TLS
//
// ?ca=FILE adds trusted certificate authorities. The mechanism is plain (default), scram-sha-256 or scram-sha-512.
// Several brokers are separated by commas. Prefer KUMO_SINK_PASSWORD to a password in the URL.
package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
)

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Lister = (*Sink)(nil)
)

// A Sink is a topic.
type Sink struct {
	at     string // URL for messages
	topic  string
	opts   []kgo.Opt // options of each client
	client *kgo.Client
}

const (
	versionHeader   = "time"
	brokerTimeout   = 15 * time.Second // limit for a broker's response
	deliveryTimeout = time.Minute      // limit for the delivery of a message
	readTimeout     = 30 * time.Second // reading ends after this time without messages
)

// Check checks the form of a sink's URL.
func Check(at *url.URL) error {
	_, err := parse(at)
	return err
}

// parse parses a sink's URL, and makes no connection.
func parse(at *url.URL) (*Sink, error) {
	s := &Sink{at: sink.RedactURL(at), topic: strings.Trim(at.Path, "/")}
	query := sink.QueryWithoutTLS(at)
	kind := query.Get("sasl")
	query.Del("sasl")
	if s.topic == "" || strings.Contains(s.topic, "/") || at.Host == "" || len(query) > 0 {
		return nil, advice.Usage("%s: want a URL such as kafka://host:9092/topic", s.at)
	}
	if at.User != nil {
		login, err := saslOf(kind, at.User)
		if err != nil {
			return nil, advice.Usage("%s: %v", s.at, err)
		}
		s.opts = append(s.opts, login)
	}
	return s, nil
}

// Open connects to a broker, and creates the topic if it does not exist. Tests pass further options.
func Open(ctx context.Context, at *url.URL, more ...kgo.Opt) (*Sink, error) {
	s, err := parse(at)
	if err != nil {
		return nil, err
	}
	isTLS := strings.HasSuffix(at.Scheme, "+tls")
	trust, err := sink.TLS(at, isTLS)
	if err != nil {
		return nil, err
	}
	var brokers []string
	for broker := range strings.SplitSeq(at.Host, ",") {
		if _, _, err := net.SplitHostPort(broker); err != nil {
			broker = net.JoinHostPort(strings.Trim(broker, "[]"), "9092")
		}
		brokers = append(brokers, broker)
	}
	s.opts = append(s.opts, kgo.SeedBrokers(brokers...), kgo.ClientID("kumo"), kgo.DialTimeout(brokerTimeout/3),
		kgo.RequestRetries(5), kgo.RetryTimeout(brokerTimeout), kgo.DisableClientMetrics())
	if isTLS {
		s.opts = append(s.opts, kgo.DialTLSConfig(trust))
	}
	s.opts = append(s.opts, more...)
	s.client, err = kgo.NewClient(append([]kgo.Opt{kgo.DefaultProduceTopic(s.topic), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.NoCompression()), kgo.RecordDeliveryTimeout(deliveryTimeout),
		kgo.AllowIdempotentProduceCancellation(), // otherwise Put waits forever for a broker that is gone
		kgo.MaxBufferedRecords(2 * sink.BatchRecords)}, s.opts...)...)
	if err != nil {
		return nil, advice.Usage("%s: %v", s.at, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*brokerTimeout)
	defer cancel()
	if err := s.create(ctx); err != nil {
		s.client.Close()
		return nil, s.explain("prepare the topic of", err)
	}
	return s, nil
}

func saslOf(kind string, user *url.Userinfo) (kgo.Opt, error) {
	password, has := user.Password()
	if !has {
		password = os.Getenv("KUMO_SINK_PASSWORD")
	}
	switch kind {
	case "", "plain":
		return kgo.SASL(plain.Auth{User: user.Username(), Pass: password}.AsMechanism()), nil
	case "scram-sha-256":
		return kgo.SASL(scram.Auth{User: user.Username(), Pass: password}.AsSha256Mechanism()), nil
	case "scram-sha-512":
		return kgo.SASL(scram.Auth{User: user.Username(), Pass: password}.AsSha512Mechanism()), nil
	}
	return nil, fmt.Errorf("sasl must be plain, scram-sha-256 or scram-sha-512, not %q", kind)
}

// metadata returns the broker's metadata of the topic.
func (s *Sink) metadata(ctx context.Context) (*kmsg.MetadataResponse, error) {
	ask := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &s.topic
	ask.Topics = append(ask.Topics, topic)
	return ask.RequestWith(ctx, s.client)
}

// create creates the topic if it does not exist.
func (s *Sink) create(ctx context.Context) error {
	answer, err := s.metadata(ctx)
	if err != nil {
		return err
	}
	if len(answer.Topics) == 1 {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	order := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = s.topic, -1, -1 // the broker's defaults
	policy, compact := kmsg.NewCreateTopicsRequestTopicConfig(), "compact"
	policy.Name, policy.Value = "cleanup.policy", &compact
	made.Configs = append(made.Configs, policy)
	order.Topics, order.TimeoutMillis = append(order.Topics, made), int32(brokerTimeout.Milliseconds())
	done, err := order.RequestWith(ctx, s.client)
	if err == nil && len(done.Topics) == 1 {
		err = kerr.ErrorForCode(done.Topics[0].ErrorCode)
	}
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil // another process has created it
	}
	return err
}

// Put implements sink.Sink.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	messages := make([]*kgo.Record, 0, len(batch))
	for i := range batch {
		var value bytes.Buffer
		enc := json.NewEncoder(&value)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(&batch[i]); err != nil {
			return err
		}
		messages = append(messages, &kgo.Record{Key: []byte(batch[i].URL), Value: bytes.TrimSuffix(value.Bytes(),
			[]byte("\n")),
			Headers: []kgo.RecordHeader{{Key: versionHeader, Value: []byte(batch[i].Time.Format(time.RFC3339))}}})
	}
	results := s.client.ProduceSync(ctx, messages...)
	for _, r := range results { // permanent errors take precedence over temporary ones
		if errors.Is(r.Err, kerr.MessageTooLarge) {
			return s.explain("write "+string(r.Record.Key)+" to", r.Err)
		}
	}
	if err := results.FirstErr(); err != nil {
		return s.explain("write to", err)
	}
	return nil
}

// Flush implements sink.Sink: Put waits for all messages.
func (s *Sink) Flush(context.Context) error { return nil }

// Each implements sink.Lister. It reads the topic from its beginning to its current end.
func (s *Sink) Each(ctx context.Context, f func(url string, version time.Time) error) error {
	left, err := s.offsets(ctx, -1)
	if err != nil {
		return s.explain("read", err)
	}
	first, err := s.offsets(ctx, -2)
	if err != nil {
		return s.explain("read", err)
	}
	for partition, end := range left {
		if first[partition] >= end {
			delete(left, partition)
		}
	}
	reader, err := kgo.NewClient(append([]kgo.Opt{kgo.ConsumeTopics(s.topic), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, s.opts...)...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for len(left) > 0 {
		some, done := context.WithTimeout(ctx, readTimeout)
		fetched := reader.PollFetches(some)
		done()
		if err := fetched.Err(); err != nil {
			return s.explain("read", err)
		}
		for at := fetched.RecordIter(); !at.Done(); {
			m := at.Next()
			if end, is := left[m.Partition]; is && m.Offset+1 >= end {
				delete(left, m.Partition)
			}
			if m.Attrs.IsControl() {
				continue
			}
			if err := f(string(m.Key), versionOf(m)); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionOf returns the version of a message; the zero time if it is not from kumo.
func versionOf(m *kgo.Record) (at time.Time) {
	for _, h := range m.Headers {
		if h.Key == versionHeader {
			at, _ = time.Parse(time.RFC3339, string(h.Value))
		}
	}
	return at
}

// offsets returns the ends (-1) or beginnings (-2) of the topic's partitions.
func (s *Sink) offsets(ctx context.Context, which int64) (map[int32]int64, error) {
	answer, err := s.metadata(ctx)
	if err != nil {
		return nil, err
	}
	list := kmsg.NewPtrListOffsetsRequest()
	list.ReplicaID = -1
	of := kmsg.NewListOffsetsRequestTopic()
	of.Topic = s.topic
	for _, t := range answer.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, err
		}
		for _, p := range t.Partitions {
			x := kmsg.NewListOffsetsRequestTopicPartition()
			x.Partition, x.Timestamp = p.Partition, which
			of.Partitions = append(of.Partitions, x)
		}
	}
	list.Topics = append(list.Topics, of)
	ends, err := list.RequestWith(ctx, s.client)
	if err != nil {
		return nil, err
	}
	all := map[int32]int64{}
	for _, t := range ends.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return nil, err
			}
			all[p.Partition] = p.Offset
		}
	}
	return all, nil
}

// Close implements sink.Sink.
func (s *Sink) Close() error {
	s.client.Close()
	return nil
}

// explain adds to an error what failed, whether it is temporary, and how to fix it.
func (s *Sink) explain(doing string, err error) error {
	said := fmt.Errorf("%s %s: %w", doing, s.at, err)
	if do := sink.TLSAdvice(err); do != "" {
		return sink.Permanent(advice.With(said, do))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return said
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism),
		errors.Is(err, kerr.IllegalSaslState):
		return advice.With(said, "set a user of the broker, kafka://USER@HOST:9092/TOPIC, with the ?sasl= that it "+
			"requires, and the password in KUMO_SINK_PASSWORD")
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return advice.With(said, fmt.Sprintf("the user needs the permissions Create (or an existing topic %s), Describe, "+
			"Write and, for kumo verify, Read on it", s.topic))
	case errors.Is(err, kerr.MessageTooLarge):
		return advice.With(said, "allow longer messages in the topic (max.message.bytes)")
	case errors.Is(err, kerr.InvalidTopicException), errors.Is(err, kerr.PolicyViolation):
		return advice.With(said, "name another topic, or have it created by a user with permission")
	}
	if e, is := errors.AsType[*kerr.Error](err); is && !e.Retriable {
		return advice.With(said, "see the broker's log")
	}
	return sink.Temporary(advice.With(said, "is Kafka running there, with this kind of security, and can this machine "+
		"reach it, and the addresses that it advertises?"))
}
