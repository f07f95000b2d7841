package segments_test

import (
	"fmt"
	"testing"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/vectortest"
)

// A request is cut into the same segments, chain and locator as in every implementation.
func TestVectors(t *testing.T) {
	vectortest.Run(t, "segments", nil, func(_ *testing.T, input canonical.Object) any {
		outline, pieces := outlined(input, "body")
		rows, locator := [][]any{}, []string{}
		for _, piece := range pieces {
			rows = append(rows, []any{piece.Kind, piece.Index, piece.Name, piece.Size, bare.Write(piece.Digest)})
		}
		for _, boundary := range outline.Locate(bare) {
			locator = append(locator, boundary.String())
		}
		found := map[string]any{"segments": rows, "root": bare.Write(outline.Root), "locator": locator}
		if _, two := input.Find("other"); two {
			compare(found, pieces, input)
		}
		return found
	})
}

var bare canonical.Exporter

func outlined(input canonical.Object, member string) (*segments.Outline, []segments.Segment) {
	body := canonical.Mapping(input.Get(member))
	if count, ok := input.Get("count").(int64); ok {
		messages := []any{}
		for at := range count {
			content := fmt.Sprintf("message %d", at)
			messages = append(messages, canonical.Object{{Name: "role", Value: "user"}, {Name: "content", Value: content}})
		}
		body = body.With("messages", messages)
	}
	api := canonical.Text(input.Get("api"))
	if api == "" {
		api = "chat"
	}
	outline := segments.Cut(vectortest.Request(api, body))
	pieces := outline.Header
	for at := range outline.Messages {
		pieces = append(pieces, outline.Message(at))
	}
	return outline, pieces
}

func compare(found map[string]any, pieces []segments.Segment, input canonical.Object) {
	_, others := outlined(input, "other")
	same, wire := []bool{}, []bool{}
	for at, piece := range pieces {
		same = append(same, piece.Digest == others[at].Digest)
		wire = append(wire, piece.Wire == others[at].Wire)
	}
	found["same"], found["same_wire"] = same, wire
}
