package contextledgerprocessor

import (
	"context"
	"strconv"

	"go.opentelemetry.io/collector/client"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
)

// Names in the metadata of a request under which the Kafka receiver tells where its record stood.
const (
	kafkaTopic     = "kafka.topic"
	kafkaPartition = "kafka.partition"
	kafkaOffset    = "kafka.offset"
)

// arrived tells the state where in Kafka a batch stood, if replicas divide the sessions, and gives the last gap before it; none
// of a batch that came another way.
func (d *desk) arrived(ctx context.Context) call.Gap {
	if d.config.State.Replicas != divideSessions {
		return call.Gap{}
	}
	said := client.FromContext(ctx).Metadata
	topic, partition, offset := said.Get(kafkaTopic), number(said, kafkaPartition), number(said, kafkaOffset)
	if len(topic) != 1 || partition < 0 || offset < 0 {
		return call.Gap{}
	}
	return d.state.Arrived(ledger.Spot{Topic: topic[0], Partition: partition, Offset: offset})
}

// number gives the number that stands under a name, -1 if none does.
func number(said client.Metadata, name string) int64 {
	texts := said.Get(name)
	if len(texts) != 1 {
		return -1
	}
	found, err := strconv.ParseInt(texts[0], 10, 64)
	if err != nil {
		return -1
	}
	return found
}
