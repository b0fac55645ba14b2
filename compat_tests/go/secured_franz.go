// Writes ten records by franz-go over a secured connection, reads them back, and prints their values.
//
// Its settings are variables of the environment, so that no secret is in a list of processes: BOOTSTRAP, TOPIC, CA and
// CERTIFICATE (files; TLS only if CA is set), MECHANISM (none, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER), USERNAME,
// PASSWORD (of OAUTHBEARER: the token).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const count = 10

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	topic := os.Getenv("TOPIC")
	options := []kgo.Opt{kgo.SeedBrokers(os.Getenv("BOOTSTRAP")), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RetryTimeout(10 * time.Second),
		kgo.AllowAutoTopicCreation()}
	options, err := secure(options)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for number := 0; number < count; number++ {
		record := &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(number))}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	for read := 0; read < count; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			fmt.Println(string(record.Value))
			read++
		}
	}
	return nil
}

func secure(options []kgo.Opt) ([]kgo.Opt, error) {
	if ca := os.Getenv("CA"); ca != "" {
		settings, err := trust(ca, os.Getenv("CERTIFICATE"))
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(settings))
	}
	user, password := os.Getenv("USERNAME"), os.Getenv("PASSWORD")
	switch mechanism := os.Getenv("MECHANISM"); mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: password}.AsMechanism()))
	case "none":
	default:
		return nil, fmt.Errorf("MECHANISM=%s is not known", mechanism)
	}
	return options, nil
}

func trust(ca, certificate string) (*tls.Config, error) {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	settings := &tls.Config{RootCAs: pool}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, certificate)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}
