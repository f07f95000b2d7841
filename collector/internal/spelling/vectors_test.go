package spelling_test

import (
	"testing"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/spelling"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
)

var spellings = map[string]func(string) string{
	"name":    func(text string) string { return spelling.Name(text, spelling.MaxName) },
	"model":   spelling.Model,
	"word":    spelling.Word,
	"session": func(text string) string { return spelling.Session(text, canonical.Exporter{}) },
}

// A text of somebody else leaves as every implementation spells it.
func TestSpelling(t *testing.T) {
	vectortest.Run(t, "spelling", nil, func(_ *testing.T, input canonical.Object) any {
		spell := spellings[canonical.Text(input.Get("as"))]
		return map[string]string{"spelled": spell(canonical.Text(input.Get("text")))}
	})
}

// A value that names a task, attempt or session stands for the same name as in every implementation.
func TestNames(t *testing.T) {
	vectortest.Run(t, "names", nil, func(_ *testing.T, input canonical.Object) any {
		return spelling.Named(input.Get("value"), canonical.Exporter{})
	})
}
