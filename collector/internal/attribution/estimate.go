package attribution

import (
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/differences"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/weight"
)

// Estimate gives the reusable tokens: the comparable call's own count on append, text weighed between known counts
// otherwise, in whole blocks. nil when nothing was reported to measure by.
func Estimate(link lineage.Link, outline *segments.Outline, block int64) *int64 {
	head := link.Head
	if head == nil {
		head = link.Sibling
	}
	if head == nil {
		return nil
	}
	if exact := Held(head, ""); link.Grows() && head.Outline.Root == outline.Root && exact != nil {
		return Floored(*exact, block)
	}
	if link.Head == nil && or0(head.Stored) > 0 && len(head.Request.Breakpoints) > 0 && !marksEnd(head.Request) {
		return head.Stored
	}
	if link.Head == nil {
		link.Head, link.Shared, link.Relation = head, lineage.Common(head.Outline.Prefix, outline.Prefix), lineage.Rewinds
	}
	tokens, known := weight.Tokens(head.Anchors, differences.SharedBytes(link, outline), head.Outline)
	if !known {
		return nil
	}
	return Floored(tokens, block)
}

// Floored is a count in whole blocks.
func Floored(tokens, block int64) *int64 {
	found := tokens - tokens%max(1, block)
	return &found
}

// Intact gives the tokens of the segments that did not change at all: how far reuse reaches whatever the changed one
// begins with.
func Intact(link lineage.Link, outline *segments.Outline) (int64, bool) {
	return weight.Tokens(link.Head.Anchors, differences.IntactBytes(link, outline), link.Head.Outline)
}

// Held gives the tokens of a prompt that the provider can have kept: on another host what that host saw last; up to the
// last cache marker where it says what it wrote; else all of it.
func Held(head *lineage.Head, route string) *int64 {
	if route != "" && head.Route != "" && route != head.Route {
		return seen(head, route)
	}
	automatic := len(head.Request.Breakpoints) == 0 && or0(head.Stored) > or0(head.Cached)
	if or0(head.Stored) > 0 && (automatic || marksEnd(head.Request)) {
		return head.Stored
	}
	return head.Tokens
}

func seen(head *lineage.Head, route string) *int64 {
	for at := range head.Routes {
		if head.Routes[at].Route == route {
			return &head.Routes[at].Tokens
		}
	}
	return head.Tokens
}
