package normalise

import (
	"fmt"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Whether a dialect's input tokens include those of the cache. Hidden is that they leave out what is told nowhere.
const (
	includesYes      = "yes"
	includesNo       = "no"
	includesUnlisted = "unlisted"
	includesHidden   = "hidden"
)

// Flags of usage, in the words of spec/README.md ("Usage").
const (
	flagExceeds    = "cache_exceeds_input"
	flagEquality   = "suspicious_equality"
	flagUnknown    = "inclusivity_unknown"
	flagTotal      = "ambiguous_total"
	flagImpossible = "impossible_number"
	flagUnparsed   = "details_unparsed"
	flagAlias      = "cached_tokens_alias"
	flagMissing    = "input_missing"
)

// ambiguous stands before the rule by which the input tokens could not be read.
const ambiguous = "ambiguous:"

// extras are counts that help to read the others.
type extras struct {
	total     *int64
	toolInput *int64
}

// settle makes one prompt of what a dialect counted, by its rule. What was counted is never changed to fit: where the
// rule and the numbers contradict each other and nothing proves which is right, the prompt is unknown, and flagged. With
// `infer` a contradiction is taken for a proof that the cached part was left out. It gives the rule's name for the
// record: empty where there was no input to read.
func settle(usage *call.Usage, counted extras, rule *Rule, infer bool) string {
	lifetimes(usage)
	if rule.Apart {
		addApart(usage, counted)
	}
	defer func() { report(usage) }()
	if usage.Input == nil {
		if usage.CacheRead != nil || usage.Output != nil {
			flag(usage, flagMissing)
		}
		return ""
	}
	parts := sum(usage.CacheRead, usage.CacheWrite)
	switch includes := read(usage, counted, rule.IncludesCache, parts, infer); includes {
	case includesYes:
		return rule.Rule
	case includesNo:
		whole := *usage.Input + parts
		usage.Input = &whole
		return rule.Rule
	default:
		flag(usage, fmt.Sprintf("%s(%d,%d)", flagUnknown, *usage.Input, parts))
		usage.Input = nil
		return ambiguous + rule.Rule
	}
}

// read says whether the input includes its cached part, given what the rule says.
func read(usage *call.Usage, counted extras, includes string, parts int64, infer bool) string {
	input := *usage.Input
	switch {
	case includes == includesHidden:
		return includesUnlisted
	case parts == 0:
		return includesYes
	case includes == includesNo && input == parts && sum(usage.CacheRead) > 0 && sum(usage.CacheWrite) > 0:
		flag(usage, flagEquality)
		return includesYes
	case includes == includesYes && parts <= input, includes == includesNo:
		return includes
	case proven(usage, counted, parts), infer && parts > input:
		if parts > input {
			flag(usage, flagExceeds)
		}
		return includesNo
	}
	return includesUnlisted
}

// proven says whether the grand total shows that the cached part stands beside the input: no emitter adds that up by
// itself. The converse proves nothing, for many write the sum of what they call input and output.
func proven(usage *call.Usage, counted extras, parts int64) bool {
	return counted.total != nil && usage.Output != nil && *counted.total == *usage.Input+parts+*usage.Output
}

// addApart adds tool input and reasoning where the grand total proves that they stand beside input and output.
func addApart(usage *call.Usage, counted extras) {
	tool, thought := sum(counted.toolInput), sum(usage.Reasoning)
	if usage.Input == nil || usage.Output == nil || tool+thought == 0 {
		return
	}
	fits := map[[2]int64]bool{}
	for _, extra := range [][2]int64{{0, 0}, {tool, 0}, {0, thought}, {tool, thought}} {
		if counted.total != nil && *counted.total == *usage.Input+*usage.Output+extra[0]+extra[1] {
			fits[extra] = true
		}
	}
	if len(fits) != 1 {
		flag(usage, flagTotal)
		return
	}
	for extra := range fits {
		input, output := *usage.Input+extra[0], *usage.Output+extra[1]
		usage.Input, usage.Output = &input, &output
	}
}

// lifetimes makes a whole of writes that are told by how long they last alone; of two stories the whole's is believed.
func lifetimes(usage *call.Usage) {
	if usage.Write5m == nil && usage.Write1h == nil && usage.Write30m == nil && usage.Write12h == nil {
		return
	}
	whole := sum(usage.Write5m, usage.Write1h, usage.Write30m, usage.Write12h)
	switch {
	case usage.CacheWrite == nil:
		usage.CacheWrite = &whole
	case whole > *usage.CacheWrite:
		flag(usage, fmt.Sprintf("cache_write_tokens_conflict(%d,%d)", *usage.CacheWrite, whole))
		usage.Write5m, usage.Write1h, usage.Write30m, usage.Write12h = nil, nil, nil, nil
	}
}

func report(usage *call.Usage) {
	usage.Report, usage.Source = semconv.CacheReportNotReported, semconv.UsageSourceMissing
	if usage.CacheRead != nil {
		usage.Report = semconv.CacheReportReported
	}
	if usage.Input != nil || usage.Output != nil || usage.CacheRead != nil || usage.CacheWrite != nil {
		usage.Source = semconv.UsageSourceTelemetry
	}
}

func flag(usage *call.Usage, word string) {
	usage.Flags = append(usage.Flags, word)
}

func sum(counts ...*int64) int64 {
	var found int64
	for _, count := range counts {
		if count != nil {
			found += *count
		}
	}
	return found
}
