package attribution

import (
	"fmt"
	"slices"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/cause"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/differences"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/lineage"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/segments"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Judge is the verdict on one call; no cause when everything that could be was reused.
func Judge(c Case) Judgement {
	found := Combined(causes(c), c.Verdict)
	found.Causes = tagged(c, found.Causes)
	return found
}

// causes are those that the client sees, without the provider's word.
func causes(c Case) []cause.Cause {
	usage, head := c.Answer.Usage, c.Link.Head
	switch missed := usage.Missed(); {
	case usage.CacheRead == nil:
		return []cause.Cause{Unreported(c.Answer)}
	case missed != nil && *missed == 0:
		return nil
	case head == nil:
		return []cause.Cause{alone(c)}
	case c.Expected == nil:
		return nil
	case !c.lost():
		return unstored(c, head)
	}
	found := arranged(c, content(c, head), append(model(c, head), candidates(c, head)...))
	if len(found) == 0 {
		return []cause.Cause{intact(c, head)}
	}
	return found
}

// Unreported says what kind of silence it was: the answer was not read to where counts stand, it brought no usage, or its
// usage says nothing of the cache.
func Unreported(answer Answer) cause.Cause {
	found := cause.Cause{Name: semconv.MissCauseNotReported, Confidence: semconv.MissConfidenceObserved}
	switch {
	case answer.End != "" && answer.End != semconv.CallEndComplete:
		return found.With("answer_not_read").By("call_end=" + answer.End)
	case answer.Usage.Input == nil:
		return found.With("no_usage").By("usage_missing")
	default:
		return found.By("counters")
	}
}

// alone is the cause where there is nothing to compare with.
func alone(c Case) cause.Cause {
	if c.Link.LostTrack {
		return cause.Fits(semconv.MissCausePreviousUnknown, "previous_response_unknown")
	}
	found := cause.Cause{Name: semconv.MissCauseColdStart, Confidence: semconv.MissConfidenceObserved}
	if c.Link.Concurrent {
		found = found.With("concurrent").By("in_flight")
	} else {
		found = found.By("first_request")
	}
	if c.cached() > 0 {
		found = found.By(fmt.Sprintf("cross_session_cached=%d", c.cached()))
	}
	return found
}

// unstored: nothing was lost; but was anything there to be reused, or was the earlier prompt too short to be kept?
func unstored(c Case, head *lineage.Head) []cause.Cause {
	if !c.Link.Grows() {
		return nil
	}
	return given(short(c, head))
}

func given(found *cause.Cause) []cause.Cause {
	if found == nil {
		return nil
	}
	return []cause.Cause{*found}
}

// harmless are causes that say that nothing was there to be lost.
var harmless = []string{
	semconv.MissCauseNotReported, semconv.MissCauseColdStart, semconv.MissCauseBelowMinimum, semconv.MissCauseGranularity,
}

// tagged marks what a fork lost to not being its parent, and a finished fork when it was woken.
func tagged(c Case, found []cause.Cause) []cause.Cause {
	head := c.Link.Head
	if len(found) == 0 || head == nil || slices.Contains(harmless, found[0].Name) {
		return found
	}
	first := found[0]
	rewoken := []string{semconv.MissCauseHistoryRewritten, semconv.MissCauseProviderUnexplained}
	switch {
	case c.Link.Parent != "":
		first = first.With("fork_lineage_lost")
	case Woken(head) && slices.Contains(rewoken, first.Name):
		first = first.With("fork_wake").By(fmt.Sprintf("wakes=%d", head.Wakes+1))
	}
	return append([]cause.Cause{first}, found[1:]...)
}

// content are the differences in content, in the order of rendering.
func content(c Case, head *lineage.Head) []cause.Cause {
	old, now := head.Outline, c.Outline
	history := differences.History(c.Link, now, c.Rules.Summaries)
	var beside *cause.Cause
	if history != nil && history.Name == semconv.MissCauseHistoryCompacted {
		beside = differences.PrunedBeside(c.Link, now)
	}
	found := given(differences.Tools(old.Of(segments.Tool), now.Of(segments.Tool)))
	found = append(found, differences.System(old.Of(segments.System), now.Of(segments.System))...)
	found = append(found, given(sized(c, head, history, beside != nil))...)
	found = append(found, given(beside)...)
	for at := range found {
		found[at] = announced(c, found[at])
	}
	return found
}

// sized says what a shrunken history shrank from and to, and whether two maintenance passes reset the prefix at once.
func sized(c Case, head *lineage.Head, history *cause.Cause, double bool) *cause.Cause {
	if history == nil || (len(history.Detail) > 0 && history.Detail[0] != differences.Pruned) {
		return history
	}
	found := *history
	if head.Tokens != nil && c.Answer.Usage.Input != nil {
		found = found.By(fmt.Sprintf("prompt_tokens=%d>%d", *head.Tokens, *c.Answer.Usage.Input))
	}
	if double {
		found = found.By("double_prefix_reset=2")
	}
	return &found
}

// lastMessages is among how many messages from the end an edit of a memory block is looked for.
const lastMessages = 6

// announced marks a memory block that the agent itself edited as expected.
func announced(c Case, found cause.Cause) cause.Cause {
	if found.Name != semconv.MissCausePolicyChanged || found.Position == nil || found.Position.Name != "memory" {
		return found
	}
	messages := c.Outline.Messages
	for at := len(messages) - 1; at > max(-1, len(messages)-1-lastMessages); at-- {
		if editsMemory(messages[at]) {
			found.Detail = []string{"expected"}
			return found.By(fmt.Sprintf("initiated_by=tool_call:message[%d]", at+c.Outline.Offset))
		}
	}
	return found
}

func editsMemory(message any) bool {
	if !slices.Contains([]string{"assistant", "function_call"}, segments.Role(message)) {
		return false
	}
	return slices.ContainsFunc(differences.Called(message), remembers)
}

// arranged puts the causes in order: which one leads, and what stands beside it.
func arranged(c Case, content, others []cause.Cause) []cause.Cause {
	if len(content) == 0 {
		return others
	}
	safe, known := Intact(c.Link, c.Outline)
	found := Arranged(content, others, !known || c.cached()+c.slack() >= safe)
	early := c.belowEstimate() > c.slack() && or0(c.Reusable) > or0(c.Rules.Minimum)
	if early && len(others) == 0 && !c.marked() {
		found = append(found, cause.Fits(semconv.MissCauseGranularity, "counters"))
	}
	return withClient(c, found)
}

// Arranged puts differences in content and outside it in order; `reached` says whether the provider reused all that
// stands before the first difference in content.
func Arranged(content, others []cause.Cause, reached bool) []cause.Cause {
	if len(content) == 0 {
		return others
	}
	if len(others) > 0 && shrunk(others[0]) {
		content = slices.Clone(content)
		for at := range content {
			if content[at].Name == semconv.MissCauseHistoryCompacted {
				content[at].Detail = []string{downshift}
			}
		}
	}
	if len(others) > 0 && leads(others[0], content[0], reached) {
		return slices.Concat(others, content)
	}
	return slices.Concat(content, others)
}

func shrunk(other cause.Cause) bool {
	return other.Name == semconv.MissCauseModelChanged && len(other.Detail) > 0 && other.Detail[0] == downshift
}

// leads says whether a difference outside the content goes before one in it. What is only possible does not, where tools
// or the system part differ for certain: they alone lose nearly everything.
func leads(other, content cause.Cause, reached bool) bool {
	if other.Name == semconv.MissCauseModelChanged {
		return true
	}
	inHistory := content.Position != nil && content.Position.Segment == segments.Message
	return !reached && (inHistory || other.Confidence == semconv.MissConfidenceObserved)
}

// withClient are the causes with the client's update, if there was one; it explains a change of content and is none
// itself.
func withClient(c Case, found []cause.Cause) []cause.Cause {
	before, now := c.Link.Head.Request.ClientVersion, c.Request.ClientVersion
	if before == "" || now == "" || before == now {
		return found
	}
	client := cause.Seen(semconv.MissCauseClientVersionChanged, before+">"+now)
	at := slices.IndexFunc(found, func(one cause.Cause) bool { return one.Name == client.Name })
	if at < 0 {
		return append(found, client)
	}
	found[at].Detail = client.Detail
	return found
}
