// Drives franz-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

type franzClient struct{ bootstrap string }

func newClient(bootstrap string) client { return &franzClient{bootstrap} }

func (c *franzClient) connect(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(c.bootstrap), kgo.ClientID("matrix"))...)
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (c *franzClient) create(topic string, partitions int) error {
	connected, err := c.connect()
	if err != nil {
		return err
	}
	defer connected.Close()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, int32(partitions), 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 15000
	request.Topics = append(request.Topics, wanted)
	ctx, cancel := limited()
	defer cancel()
	answer, err := request.RequestWith(ctx, connected)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Topics[0].ErrorCode)
}

func (c *franzClient) produce(mode, topic, codec string, first, count int, timestamp int64) error {
	options := []kgo.Opt{kgo.ProducerBatchCompression(codecs[codec]), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.RecordDeliveryTimeout(20 * time.Second), kgo.UnknownTopicRetries(20)}
	inTransaction := mode == "aborted" || mode == "committed"
	if mode == "plain" {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if inTransaction {
		options = append(options, kgo.TransactionalID(topic))
	}
	producer, err := c.connect(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	ctx, cancel := limited()
	defer cancel()
	if inTransaction {
		if err := producer.BeginTransaction(); err != nil {
			return err
		}
	}
	if err := producer.ProduceSync(ctx, records(topic, first, count, timestamp)...).FirstErr(); err != nil {
		return err
	}
	if inTransaction {
		return producer.EndTransaction(ctx, kgo.TransactionEndTry(mode == "committed"))
	}
	return nil
}

func records(topic string, first, count int, timestamp int64) []*kgo.Record {
	made := make([]*kgo.Record, count)
	for i := range made {
		n := first + i
		made[i] = &kgo.Record{Topic: topic, Key: key(n), Value: value(n), Timestamp: at(timestamp, n),
			Headers: []kgo.RecordHeader{{Key: "n", Value: header(n)}}}
	}
	return made
}

func (c *franzClient) consume(committed bool, topic string, partitions, count int) error {
	offsets := map[int32]kgo.Offset{}
	for partition := 0; partition < partitions; partition++ {
		offsets[int32(partition)] = kgo.NewOffset().AtStart()
	}
	options := []kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.FetchMaxWait(100 * time.Millisecond)}
	if committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	consumer, err := c.connect(options...)
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, cancel := limited()
	defer cancel()
	for seen := 0; seen < count; {
		fetches := consumer.PollFetches(ctx)
		for _, failure := range fetches.Errors() {
			// A truncated log is reported, and read on from where it was truncated.
			var lost *kgo.ErrDataLoss
			if !errors.As(failure.Err, &lost) {
				return fmt.Errorf("after %d of %d records: %w", seen, count, failure.Err)
			}
		}
		fetches.EachRecord(tellFetched)
		seen += fetches.NumRecords()
	}
	return nil
}

func tellFetched(record *kgo.Record) {
	var held []byte
	for _, header := range record.Headers {
		if header.Key == "n" {
			held = header.Value
		}
	}
	tellRecord(record.Partition, record.Offset, record.Key, record.Value, record.Timestamp, held)
}

func (c *franzClient) join(topic, group string, leave <-chan string) error {
	held := map[int32]bool{}
	change := func(added bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(ctx context.Context, member *kgo.Client, changed map[string][]int32) {
			if !added {
				member.CommitUncommittedOffsets(ctx)
			}
			for _, partition := range changed[topic] {
				held[partition] = added
			}
			var partitions []int
			for partition, is := range held {
				if is {
					partitions = append(partitions, int(partition))
				}
			}
			tellAssigned(partitions)
		}
	}
	member, err := c.connect(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(10*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)),
		kgo.BlockRebalanceOnPoll())
	if err != nil {
		return err
	}
	defer member.CloseAllowingRebalance()
	for {
		select {
		case <-leave:
			ctx, cancel := limited()
			defer cancel()
			return member.CommitUncommittedOffsets(ctx)
		default:
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			member.PollFetches(ctx).EachRecord(tellFetched)
			cancel()
			member.AllowRebalance()
		}
	}
}
