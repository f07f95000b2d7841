package traces

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/attribution"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// maxNames is how many names one piece of evidence holds.
const maxNames = 8

// differ says whether two parts are not the same, as far as both calls tell them.
func (c *Case) differ(before, now Part) bool {
	return before != now && (c.complete() || (before != 0 && now != 0))
}

func (c *Case) complete() bool { return c.Link.Head.Complete && c.Now.Complete }

// differs is the same of words.
func (c *Case) differs(before, now string) bool {
	return before != now && (c.complete() || (before != "" && now != ""))
}

// same says whether the digests of two traces can be compared at all.
func (c *Case) same() bool { return c.Link.Head.Scheme == c.Now.Scheme }

// content are the differences in content, in the order of rendering, as far as digests tell them.
func (c *Case) content() []cause.Cause {
	found := []cause.Cause{}
	if c.same() {
		found = append(c.tools(), c.policy()...)
	}
	if history := c.history(); history != nil {
		found = append(found, *history)
	}
	return found
}

func differing(name, part string) []cause.Cause {
	return []cause.Cause{cause.Fits(name, part+"_differs")}
}

func (c *Case) tools() []cause.Cause {
	before, now := c.Link.Head.Parts, c.Now.Parts
	if named := c.namedTools(); named != nil {
		return []cause.Cause{*named}
	}
	switch {
	case c.differ(before.Tools, now.Tools):
		return differing(semconv.MissCauseToolsChanged, "tool_schema_hash")
	case !c.differ(before.ToolsWire, now.ToolsWire):
		return nil
	case c.Link.Located && c.Link.Shared >= 0:
		// The header's chain knows the order of tools and not their bytes: it is the same.
		return differing(semconv.MissCauseToolsSerializationChanged, "tool_wire_hash")
	default:
		return differing(semconv.MissCauseToolsReordered, "tool_wire_hash")
	}
}

// namedTools says how tools changed whose names were told, each with a digest.
func (c *Case) namedTools() *cause.Cause {
	before, now := c.Link.Head.Tools, c.Now.Tools
	if len(before) == 0 || len(now) == 0 || len(before) >= maxTools || len(now) >= maxTools || slices.Equal(before, now) {
		return nil
	}
	found := cause.Fits(semconv.MissCauseToolsChanged, "tools_told")
	for _, side := range []struct {
		word  string
		names []string
	}{{"added", without(now, before)}, {"removed", without(before, now)}} {
		if len(side.names) > 0 {
			named := strings.Join(side.names[:min(len(side.names), maxNames)], ",")
			found = found.With(side.word).By(side.word + "=" + named)
		}
	}
	if len(found.Detail) > 0 {
		return &found
	}
	if slices.Equal(ordered(before), ordered(now)) {
		found = cause.Fits(semconv.MissCauseToolsReordered, "tools_told")
	}
	return &found
}

func without(tools, others []call.Tool) []string {
	names := []string{}
	for _, tool := range tools {
		if !slices.ContainsFunc(others, func(other call.Tool) bool { return other.Name == tool.Name }) {
			names = append(names, tool.Name)
		}
	}
	return names
}

func ordered(tools []call.Tool) []call.Tool {
	sorted := slices.Clone(tools)
	slices.SortFunc(sorted, func(a, b call.Tool) int {
		return strings.Compare(a.Name+"\x00"+a.Digest, b.Name+"\x00"+b.Digest)
	})
	return sorted
}

func (c *Case) policy() []cause.Cause {
	before, now := c.Link.Head.Parts, c.Now.Parts
	switch {
	case c.differ(before.Policy, now.Policy):
		return differing(semconv.MissCausePolicyChanged, "policy_hash")
	case !c.differ(before.PolicyWire, now.PolicyWire):
		return nil
	case before.Policy != 0 && now.Policy != 0:
		return differing(semconv.MissCauseVolatilePrefix, "policy_wire_hash")
	default:
		// Without the masked digest a clock and a rule cannot be told apart.
		return differing(semconv.MissCausePolicyChanged, "policy_wire_hash")
	}
}

// compacted says whether the history gave way to a summary between the two calls.
func (c *Case) compacted() bool {
	return c.Compacted || Summarised(c.Link.Head, c.Now)
}

func (c *Case) history() *cause.Cause {
	grown := c.Link.Relation == lineage.Extends || c.Link.Relation == lineage.Repeats
	where := cause.At(segments.Message, int(max(0, c.Link.Shared)), "", "resume")
	if c.compacted() && !grown {
		found := cause.Fits(semconv.MissCauseHistoryCompacted, "compaction_told")
		if c.Link.Located {
			found = found.In(where)
		}
		return &found
	}
	if !c.Link.Located || c.Link.Relation != lineage.Rewrites {
		return nil
	}
	found := cause.Fits(semconv.MissCauseHistoryRewritten, "locator").In(where)
	return &found
}

// others are the differences outside the content.
func (c *Case) others() []cause.Cause {
	head, now := c.Link.Head, c.Now
	found := c.model()
	if head.Route != "" && now.Route != "" && head.Route != now.Route {
		found = append(found, reported(semconv.MissCauseRouteChanged, fmt.Sprintf("route=%s>%s", head.Route, now.Route)))
	}
	if c.differs(head.Effort, now.Effort) {
		change := fmt.Sprintf("effort=%s>%s", said(head.Effort), said(now.Effort))
		found = append(found, cause.Fits(semconv.MissCauseEffortChanged, change))
	}
	if c.settings() {
		found = append(found, cause.Fits(semconv.MissCauseSettingsChanged, "cache_identity_differs"))
	}
	if idle, lifetime := c.Idle(), c.Lifetime(); idle != nil && lifetime != nil && *idle > *lifetime {
		found = append(found, attribution.Expired(*idle, *lifetime))
	}
	return found
}

// said is a word, or what Python writes for none.
func said(word string) string {
	if word == "" {
		return "None"
	}
	return word
}

func reported(name, change string) cause.Cause {
	found := cause.Cause{Name: name, Confidence: semconv.MissConfidenceObserved}
	return found.By("provider_reported", change)
}

func (c *Case) model() []cause.Cause {
	head, now := c.Link.Head, c.Now
	switch {
	case head.Model != "" && now.Model != "" && head.Model != now.Model:
		change := fmt.Sprintf("model=%s>%s", head.Model, now.Model)
		return []cause.Cause{cause.Fits(semconv.MissCauseModelChanged, "model_id_differs", change)}
	case head.Served != "" && now.Served != "" && head.Served != now.Served:
		found := reported(semconv.MissCauseModelChanged, fmt.Sprintf("served=%s>%s", head.Served, now.Served))
		return []cause.Cause{found.With("served")}
	default:
		return nil
	}
}

// settings says whether the cache identity differs although every part of it that is told by itself is the same.
func (c *Case) settings() bool {
	head, now := c.Link.Head, c.Now
	before, after := head.Parts, now.Parts
	return c.same() && c.differ(before.Cache, after.Cache) && head.Model == now.Model && head.Effort == now.Effort &&
		before.PolicyWire == after.PolicyWire && before.ToolsWire == after.ToolsWire && before.Summary == after.Summary
}

// looked says whether two snapshots of a repository differ, of which both were taken.
func looked(before, now Part) bool {
	return before != 0 && now != 0 && before != now
}

// Told says whether both calls told digests of the system part or the tools, in one way.
func (c *Case) Told() bool {
	before, now := c.Link.Head.Parts, c.Now.Parts
	return c.same() && (before.PolicyWire != 0 && now.PolicyWire != 0 || before.ToolsWire != 0 && now.ToolsWire != 0)
}

// Changed are the parts of the identity that are told by both and differ, in the words of context_ledger.part.
func (c *Case) Changed() []string {
	head, now := c.Link.Head, c.Now
	before, after := head.Parts, now.Parts
	found := []string{}
	for _, part := range []struct {
		name    string
		differs bool
	}{
		{semconv.PartProviderSurface, head.Surface != now.Surface},
		{semconv.PartModel, head.Model != now.Model},
		{semconv.PartEffort, head.Effort != now.Effort},
		{semconv.PartPolicy, c.same() && c.differ(before.Policy, after.Policy)},
		{semconv.PartRepository, c.same() && looked(before.Repository, after.Repository)},
		{semconv.PartTools, c.same() && c.differ(before.Tools, after.Tools)},
		{semconv.PartSummary, c.same() && before.Summary != after.Summary},
		{semconv.PartPolicyWire, c.same() && c.differ(before.PolicyWire, after.PolicyWire)},
		{semconv.PartToolsWire, c.same() && c.differ(before.ToolsWire, after.ToolsWire)},
		{semconv.PartSettings, c.settings()},
	} {
		if part.differs {
			found = append(found, part.name)
		}
	}
	return found
}
