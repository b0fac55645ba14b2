package main

import (
	"errors"

	"github.com/IBM/sarama"
)

var errUnknown = errors.New("this release knows no transactions")

func setTransaction(*sarama.Config, string) {}

func begin(sarama.SyncProducer) error { return errUnknown }

func end(sarama.SyncProducer, bool) error { return errUnknown }
