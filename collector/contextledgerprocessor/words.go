package contextledgerprocessor

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/guard"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/normalise"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// noWord stands for no word, and for one that somebody sent and nobody here has: those are never told in our telemetry.
const noWord = "none"

// words has the attributes of the processor's own telemetry, made once: of each dialect, and of each cause by each
// judge.
type words struct {
	dialects map[string]metric.MeasurementOption
	verdicts map[[2]string]metric.MeasurementOption
}

func newWords(reader *normalise.Normaliser) words {
	made := words{dialects: map[string]metric.MeasurementOption{}, verdicts: map[[2]string]metric.MeasurementOption{}}
	for _, dialect := range append(reader.Dialects(), normalise.Ours, noWord) {
		made.dialects[dialect] = guard.By("dialect", dialect)
	}
	for _, cause := range append([]string{noWord}, semconv.Causes...) {
		for _, judge := range append([]string{noWord}, semconv.Members[semconv.ContextLedgerJudgedBy]...) {
			made.verdicts[[2]string{cause, judge}] = metric.WithAttributeSet(
				attribute.NewSet(attribute.String("cause", cause), attribute.String("by", judge)))
		}
	}
	return made
}

func (w words) dialect(name string) metric.MeasurementOption {
	if found, ok := w.dialects[name]; ok {
		return found
	}
	return w.dialects[noWord]
}

func (w words) verdict(cause, judge string) metric.MeasurementOption {
	if _, known := w.verdicts[[2]string{cause, noWord}]; !known {
		cause = noWord
	}
	if found, ok := w.verdicts[[2]string{cause, judge}]; ok {
		return found
	}
	return w.verdicts[[2]string{cause, noWord}]
}
