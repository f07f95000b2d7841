// Package identity owns which version of each part a request is made of, and the two digests over them (spec/README.md,
// "Identity").
package identity

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/recent"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/volatility"
)

var contextParts = []string{
	semconv.PartProviderSurface, semconv.PartModel, semconv.PartEffort, semconv.PartPolicy, semconv.PartRepository,
	semconv.PartTools, semconv.PartSummary,
}

var cacheParts = []string{
	semconv.PartProviderSurface, semconv.PartModel, semconv.PartEffort, semconv.PartPolicyWire, semconv.PartToolsWire,
	semconv.PartSummary, semconv.PartCacheKey, semconv.PartServiceTier, semconv.PartTextFormat, semconv.PartSettings,
}

// parts are all, in the order in which changes are told.
var parts = union(contextParts, cacheParts)

func union(first, second []string) []string {
	all := slices.Clone(first)
	for _, name := range second {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Identity is the version of each part, a JSON value (digests as hex digits, nil for none), and the digests over them.
type Identity struct {
	Parts   map[string]any
	Context canonical.Digest
	Cache   canonical.Digest
}

// Part is the version of a part as a text, empty for none.
func (i Identity) Part(name string) string {
	return canonical.Text(i.Parts[name])
}

// pending is the snapshot of a repository that was not looked at yet.
const pending = "pending"

// Changed are the parts that differ from an earlier call's; a repository not looked at yet is no change.
func (i Identity) Changed(earlier Identity) []string {
	changed := []string{}
	for _, name := range parts {
		before, now := earlier.Parts[name], i.Parts[name]
		if !equal(before, now) && (name != semconv.PartRepository || looked(before, now)) {
			changed = append(changed, name)
		}
	}
	return changed
}

func looked(snapshots ...any) bool {
	return !slices.Contains(snapshots, any(pending)) && !slices.Contains(snapshots, nil)
}

func equal(a, b any) bool {
	return bytes.Equal(canonical.Form(a), canonical.Form(b))
}

// maxPolicies is how many system parts are remembered beside what they are masked.
const maxPolicies = 256

// Identifier makes identities; masking long texts is done once, not per call. It is not locked.
type Identifier struct {
	policies *recent.Map[canonical.Digest, canonical.Digest]
}

// NewIdentifier makes one that has seen nothing.
func NewIdentifier() *Identifier {
	return &Identifier{recent.New[canonical.Digest, canonical.Digest]()}
}

var formats = []string{"response_format", "text", "verbosity"}

// serviceTier is the setting that is a part of its own.
const serviceTier = "service_tier"

// Identify gives the identity of a request to a surface; an empty repository is one that nobody told of.
func (i *Identifier) Identify(request segments.Request, outline *segments.Outline, surface, repository string) Identity {
	tools := append(outline.Of(segments.Tool), outline.InnerTools()...)
	system := outline.Of(segments.System)
	chosen, others := divided(request.Settings)
	versions := map[string]any{
		semconv.PartProviderSurface: surface,
		semconv.PartModel:           said(request.Model),
		semconv.PartEffort:          said(request.Effort),
		semconv.PartPolicy:          i.masked(system),
		semconv.PartPolicyWire:      joined(system, wire),
		semconv.PartRepository:      said(repository),
		semconv.PartTools:           set(tools),
		semconv.PartToolsWire:       joined(tools, wire),
		semconv.PartSummary:         nil,
		semconv.PartCacheKey:        said(request.CacheKey),
		semconv.PartServiceTier:     request.Settings.Get(serviceTier),
		semconv.PartTextFormat:      digested(chosen),
		semconv.PartSettings:        digested(others),
	}
	return Identity{versions, over(versions, contextParts), over(versions, cacheParts)}
}

func said(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func written(digest canonical.Digest) any {
	return hex.EncodeToString(digest[:])
}

func over(versions map[string]any, names []string) canonical.Digest {
	values := make([]any, len(names))
	for at, name := range names {
		values[at] = versions[name]
	}
	return canonical.OfValues(values...)
}

// divided parts the settings in those that form the text and the others.
func divided(settings canonical.Object) (chosen, others canonical.Object) {
	for _, member := range settings {
		switch {
		case slices.Contains(formats, member.Name):
			chosen = append(chosen, member)
		case member.Name != serviceTier:
			others = append(others, member)
		}
	}
	return chosen, others
}

func digested(settings canonical.Object) any {
	if len(settings) == 0 {
		return nil
	}
	return written(canonical.OfValues(settings))
}

func wire(segment segments.Segment) canonical.Digest  { return segment.Wire }
func plain(segment segments.Segment) canonical.Digest { return segment.Digest }

func joined(pieces []segments.Segment, of func(segments.Segment) canonical.Digest) any {
	if len(pieces) == 0 {
		return nil
	}
	return written(canonical.Joined(digests(pieces, of)...))
}

func digests(pieces []segments.Segment, of func(segments.Segment) canonical.Digest) []canonical.Digest {
	found := make([]canonical.Digest, len(pieces))
	for at, piece := range pieces {
		found[at] = of(piece)
	}
	return found
}

// set is the digest of tools in any order.
func set(tools []segments.Segment) any {
	if len(tools) == 0 {
		return nil
	}
	sorted := digests(tools, plain)
	slices.SortFunc(sorted, func(a, b canonical.Digest) int { return bytes.Compare(a[:], b[:]) })
	return written(canonical.Joined(sorted...))
}

// masked is the digest of the system texts with volatile spans masked.
func (i *Identifier) masked(system []segments.Segment) any {
	if len(system) == 0 {
		return nil
	}
	key := canonical.Joined(digests(system, wire)...)
	found, known := i.policies.Get(key)
	if !known {
		texts := make([]string, len(system))
		for at, piece := range system {
			texts[at] = volatility.Mask(segments.Texts(piece.Value))
		}
		found = canonical.OfText(strings.Join(texts, "\n"))
	}
	i.policies.Bound(key, found, maxPolicies)
	return written(found)
}
