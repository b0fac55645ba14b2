package main

import "github.com/IBM/sarama"

func setTransaction(config *sarama.Config, id string) { config.Producer.Transaction.ID = id }

func begin(producer sarama.SyncProducer) error { return producer.BeginTxn() }

func end(producer sarama.SyncProducer, commit bool) error {
	if commit {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}
