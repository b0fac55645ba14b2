// Drives segmentio/kafka-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

type kafkaGoClient struct{ bootstrap string }

func newClient(bootstrap string) client { return &kafkaGoClient{bootstrap} }

func (c *kafkaGoClient) create(topic string, partitions int) error {
	asked := &kafka.Client{Addr: kafka.TCP(c.bootstrap), Timeout: patience}
	answer, err := asked.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c *kafkaGoClient) produce(mode, topic, codec string, first, count int, timestamp int64) error {
	writer := &kafka.Writer{Addr: kafka.TCP(c.bootstrap), Topic: topic, Balancer: &kafka.Hash{},
		RequiredAcks: kafka.RequireAll, Compression: codecs[codec], BatchTimeout: 5 * time.Millisecond}
	defer writer.Close()
	messages := make([]kafka.Message, count)
	for i := range messages {
		n := first + i
		messages[i] = kafka.Message{Key: key(n), Value: value(n), Time: at(timestamp, n),
			Headers: []kafka.Header{{Key: "n", Value: header(n)}}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := writer.WriteMessages(ctx, messages...)
	var failed kafka.WriteErrors
	if errors.As(err, &failed) {
		for _, failure := range failed {
			if failure != nil {
				return failure
			}
		}
	}
	return err
}

func (c *kafkaGoClient) consume(committed bool, topic string, partitions, count int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	messages, errs := make(chan kafka.Message), make(chan error, partitions)
	for partition := 0; partition < partitions; partition++ {
		reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{c.bootstrap}, Topic: topic, Partition: partition,
			MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond})
		defer reader.Close()
		go read(ctx, reader, messages, errs)
	}
	for seen := 0; seen < count; seen++ {
		select {
		case message := <-messages:
			tellMessage(message)
		case err := <-errs:
			return fmt.Errorf("after %d of %d records: %w", seen, count, err)
		}
	}
	return nil
}

func read(ctx context.Context, reader *kafka.Reader, messages chan<- kafka.Message, errs chan<- error) {
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			errs <- err
			return
		}
		select {
		case messages <- message:
		case <-ctx.Done():
			return
		}
	}
}

func tellMessage(message kafka.Message) {
	var held []byte
	for _, header := range message.Headers {
		if header.Key == "n" {
			held = header.Value
		}
	}
	tellRecord(int32(message.Partition), message.Offset, message.Key, message.Value, message.Time, held)
}

func (c *kafkaGoClient) join(topic, group string, leave <-chan string) error {
	member, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{ID: group, Brokers: []string{c.bootstrap},
		Topics: []string{topic}, HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: 10 * time.Second,
		StartOffset: kafka.FirstOffset})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for {
			generation, err := member.Next(ctx)
			if err != nil {
				ended <- err
				return
			}
			c.serveGeneration(generation, topic)
		}
	}()
	<-leave
	// Closing ends the generation, whose readers commit where they are; then the member leaves.
	err = member.Close()
	cancel()
	if last := <-ended; err == nil && !errors.Is(last, kafka.ErrGroupClosed) && !errors.Is(last, context.Canceled) {
		err = last
	}
	return err
}

func (c *kafkaGoClient) serveGeneration(generation *kafka.Generation, topic string) {
	var partitions []int
	for _, assignment := range generation.Assignments[topic] {
		partitions = append(partitions, assignment.ID)
		partition, offset := assignment.ID, assignment.Offset
		generation.Start(func(ctx context.Context) { c.readPartition(ctx, generation, topic, partition, offset) })
	}
	tellAssigned(partitions)
}

func (c *kafkaGoClient) readPartition(ctx context.Context, generation *kafka.Generation, topic string, partition int, offset int64) {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{c.bootstrap}, Topic: topic, Partition: partition,
		MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond})
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		return
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return
		}
		tellMessage(message)
		if message.Offset+1 == message.HighWaterMark {
			generation.CommitOffsets(map[string]map[int]int64{topic: {partition: message.Offset + 1}})
		}
	}
}
