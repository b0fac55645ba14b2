// Drives sarama; SARAMA_VERSION is the protocol version it is told to speak.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

type saramaClient struct {
	bootstrap []string
	version   sarama.KafkaVersion
}

func newClient(bootstrap string) client {
	version, err := sarama.ParseKafkaVersion(os.Getenv("SARAMA_VERSION"))
	if err != nil {
		panic(err)
	}
	return &saramaClient{[]string{bootstrap}, version}
}

func (c *saramaClient) config() *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = "matrix"
	config.Version = c.version
	config.Net.DialTimeout = 10 * time.Second
	config.Net.ReadTimeout = 15 * time.Second
	return config
}

func (c *saramaClient) create(topic string, partitions int) error {
	if !c.version.IsAtLeast(sarama.V0_10_1_0) {
		asked, err := sarama.NewClient(c.bootstrap, c.config())
		if err != nil {
			return err
		}
		defer asked.Close()
		_, err = asked.Partitions(topic)
		return err
	}
	admin, err := sarama.NewClusterAdmin(c.bootstrap, c.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false)
}

func (c *saramaClient) produce(mode, topic, codec string, first, count int, timestamp int64) error {
	config := c.config()
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Compression = codecs[codec]
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = mode != "plain"
	inTransaction := mode == "aborted" || mode == "committed"
	if inTransaction {
		setTransaction(config, topic)
	}
	producer, err := sarama.NewSyncProducer(c.bootstrap, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	if inTransaction {
		if err := begin(producer); err != nil {
			return err
		}
	}
	if err := producer.SendMessages(c.messages(topic, first, count, timestamp)); err != nil {
		return fmt.Errorf("%w: %v", err, err.(sarama.ProducerErrors)[0].Err)
	}
	if inTransaction {
		return end(producer, mode == "committed")
	}
	return nil
}

func (c *saramaClient) messages(topic string, first, count int, timestamp int64) []*sarama.ProducerMessage {
	messages := make([]*sarama.ProducerMessage, count)
	for i := range messages {
		n := first + i
		messages[i] = &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(key(n)),
			Value: sarama.ByteEncoder(value(n)), Timestamp: at(timestamp, n)}
		if c.version.IsAtLeast(sarama.V0_11_0_0) {
			messages[i].Headers = []sarama.RecordHeader{{Key: []byte("n"), Value: header(n)}}
		}
	}
	return messages
}

func (c *saramaClient) consume(committed bool, topic string, partitions, count int) error {
	config := c.config()
	config.Consumer.Return.Errors = true
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer(c.bootstrap, config)
	if err != nil {
		return err
	}
	defer consumer.Close()
	messages, errs := make(chan *sarama.ConsumerMessage), make(chan error, 1)
	for partition := 0; partition < partitions; partition++ {
		reader, err := consumer.ConsumePartition(topic, int32(partition), sarama.OffsetOldest)
		if err != nil {
			return err
		}
		defer reader.AsyncClose()
		go func() {
			for message := range reader.Messages() {
				messages <- message
			}
		}()
		go func() {
			for err := range reader.Errors() {
				errs <- err
			}
		}()
	}
	deadline := time.After(patience)
	for seen := 0; seen < count; seen++ {
		select {
		case message := <-messages:
			tellMessage(message)
		case err := <-errs:
			return err
		case <-deadline:
			return fmt.Errorf("only %d of %d records came", seen, count)
		}
	}
	go func() {
		for range messages {
		}
	}()
	return nil
}

func tellMessage(message *sarama.ConsumerMessage) {
	var held []byte
	for _, header := range message.Headers {
		if string(header.Key) == "n" {
			held = header.Value
		}
	}
	tellRecord(message.Partition, message.Offset, message.Key, message.Value, message.Timestamp, held)
}

func (c *saramaClient) join(topic, group string, leave <-chan string) error {
	config := c.config()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = 10 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	member, err := sarama.NewConsumerGroup(c.bootstrap, group, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Add(1)
	var failed error
	go func() {
		defer running.Done()
		for ctx.Err() == nil {
			if err := member.Consume(ctx, []string{topic}, handler{topic}); err != nil {
				failed = err
				return
			}
		}
	}()
	<-leave
	cancel()
	running.Wait()
	if err := member.Close(); err != nil {
		return err
	}
	return failed
}

type handler struct{ topic string }

func (h handler) Setup(session sarama.ConsumerGroupSession) error {
	var partitions []int
	for _, partition := range session.Claims()[h.topic] {
		partitions = append(partitions, int(partition))
	}
	tellAssigned(partitions)
	return nil
}

func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		tellMessage(message)
		session.MarkMessage(message, "")
	}
	return nil
}
