// Package call owns the record of one model call as a collector knows it: what a span or a log record said of it, and
// how the record is read from and written to the attributes of spec/registry. It judges nothing; what foreign dialects
// mean is the business of package normalise.
//
// Everything that nobody reported is nil, or an empty string; a reported zero is a pointer to 0. Tokens are counts,
// durations seconds, sizes bytes.
package call

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

// Call is one model call. The zero value is a call of which nothing is known.
type Call struct {
	Place      Place
	Task       Task
	Model      Model
	Context    Context
	Usage      Usage
	Verdict    Verdict
	Process    Said
	Request    Request
	Cost       Cost
	Checks     Checks
	Compaction Compaction
	Origin     Origin
	Content    *Content
}

// Place is where and when the call was seen. Of a log record that says only when the call ended, Start is End less the
// duration where that is known, else the same as End. Gap is the last one in the queue by which it came.
type Place struct {
	Trace  pcommon.TraceID
	Span   pcommon.SpanID
	Parent pcommon.SpanID
	Start  time.Time
	End    time.Time
	Gap    Gap
}

// Gap is a place in a queue, a partition of a topic, where a ledger does not know what was before. It gives each a number, and
// each queue one. A Number of 0 is that of what came by no queue.
type Gap struct {
	Queue  int
	Number uint64
}

// Task says for whom the call was made. SessionSource is explicit, conversation_id, cache_key or lineage. Outcome is
// how the task ended, of a record that tells an outcome.
type Task struct {
	ID            string
	Attempt       string
	Session       string
	SessionSource string
	ParentSession string
	ForkOf        string
	Kind          string
	Agent         string
	Outcome       string
}

// Model says what was called. Provider is in the words of gen_ai.provider.name; Endpoint is a host, and a port where it
// is not the default.
type Model struct {
	Surface         string
	Provider        string
	Endpoint        string
	API             string
	Requested       string
	Served          string
	Version         string
	Effort          string
	EffortRequested string
	ClientVersion   string
	Window          *int64
	Route           string
	ServiceTier     string
}

// Context has the versions of the parts of the request, as digests. Digests of two Origin.DigestScheme cannot be
// compared.
type Context struct {
	Policy          string
	PolicyWire      string
	ToolSchema      string
	ToolWire        string
	ToolContract    string
	Tools           []Tool
	RepoSnapshot    string
	Summary         string
	SummaryTrusted  *bool
	HistoryLength   *int64
	Identity        string
	CacheIdentity   string
	IdentityChanged []string
	Comparable      string
	Locator         []Boundary
}

// Tool is one tool by its name and the digest that its client made of it.
type Tool struct {
	Name   string
	Digest string
}

// Usage has the tokens of the call. Input holds every prompt token, those read from and written to a cache included.
type Usage struct {
	Report     string
	Input      *int64
	CacheRead  *int64
	CacheWrite *int64
	Write5m    *int64
	Write1h    *int64
	Write30m   *int64
	Write12h   *int64
	Output     *int64
	Reasoning  *int64
	Source     string
	Flags      []string
}

// Missed gives the prompt tokens that were not read from the cache; nil where the provider did not report reuse.
func (u Usage) Missed() *int64 {
	if u.Input == nil || u.CacheRead == nil {
		return nil
	}
	return positive(*u.Input - *u.CacheRead)
}

// Uncached gives the prompt tokens that were neither read nor written, and Unreported those of which nobody said
// whether they were: of a call whose parts fit into its input exactly one of the two is not nil.
func (u Usage) Uncached() *int64 { return u.rest(u.CacheRead != nil) }

// Unreported is told at Uncached.
func (u Usage) Unreported() *int64 { return u.rest(u.CacheRead == nil) }

func (u Usage) rest(asked bool) *int64 {
	if u.Input == nil || !asked {
		return nil
	}
	return positive(*u.Input - or0(u.CacheRead) - or0(u.CacheWrite))
}

// positive keeps what does not add up from being counted: parts above their whole leave no rest that is known.
func positive(count int64) *int64 {
	if count < 0 {
		return nil
	}
	return &count
}

func or0(count *int64) int64 {
	if count == nil {
		return 0
	}
	return *count
}

// Verdict is what was found out about the cache. By is semconv.JudgedByProcess or semconv.JudgedByCollector; Outcome and Cause are
// words of the registry. A verdict without an outcome is none. Position is where the prefix broke, as far as that is known.
type Verdict struct {
	By          string
	Outcome     string
	Cause       string
	Detail      []string
	Secondary   []string
	Evidence    []string
	Confidence  string
	Significant *bool
	Position    Position
	Reusable    *int64
	Avoidable   *int64
	Idle        *float64
	Retention   *float64
	Provider    string
	Conflict    *bool
}

// Position is a place in what was sent: the kind of segment (tool, system, message, settings), its index and name, the
// first character or byte that differs, and what kind of change it was.
type Position struct {
	Segment string
	Index   *int64
	Name    string
	Offset  *int64
	Kind    string
}

// Said is what the process that made the call said of it, where Verdict is a later word of a collector.
type Said struct {
	Outcome string
	Cause   string
}

// Request is what was sent and came back, without its text.
type Request struct {
	ResponseID         string
	FinishReasons      []string
	ErrorType          string
	End                string
	Stream             *bool
	ToolCalls          *int64
	RepeatedReadBytes  *int64
	TimeToFirstToken   *float64
	TimeToFirstContent *float64
	Duration           *float64
}

// Cost is money or quota: Unit is usd or quota, Source provider or computed.
type Cost struct {
	Amount       *float64
	Currency     string
	Source       string
	Unit         string
	WithoutCache *float64
	Missing      string
}

// Checks has the verdicts of the correctness checks by pillar; empty is not looked at.
type Checks struct {
	Policy      string
	Repository  string
	Tools       string
	Constraints string
	State       string
}

// Compaction is what is known of a compaction: beside a call, only its Event, the id of the one that led to the
// summary in force. Seen says that the history was told or seen to be compacted before this call, Estimated
// which of the sides before and after are estimates of the client.
type Compaction struct {
	Event           string
	Seen            bool
	Kind            string
	Trigger         string
	Outcome         string
	TokensBefore    *int64
	TokensAfter     *int64
	SummaryHash     string
	Validator       string
	ValidatorResult string
	Reason          string
	Estimated       []string
}

// Origin says how the record came about. CountedBy is sdk, none, off or collector; Aggregate marks usage that other
// calls told already, which is never counted.
type Origin struct {
	EntryID       string
	Dialect       string
	Rule          string
	Aggregate     bool
	CountedBy     string
	DigestScheme  string
	LedgerVersion string
	LedgerError   string
	Truncated     bool
}

// Content is the captured text of a request, each part as JSON, in the order in which it was sent. It is there only
// for as long as the call is looked at, and only where a normaliser was told to read it. Two requests can be held
// against each other where their Form is the same.
type Content struct {
	Form     string
	Tools    [][]byte
	System   [][]byte
	Messages [][]byte
}

// Reset makes the call one of which nothing is known. It keeps room for the boundaries of the next one; who has those of
// this one must not keep them.
func (c *Call) Reset() {
	room := c.Context.Locator
	clear(room)
	*c = Call{Context: Context{Locator: room[:0]}}
}

// cacheParts are the parts of the cache identity, in the words of context_ledger.part.
var cacheParts = []string{
	"provider_surface", "model", "effort", "policy_wire", "tools_wire", "summary", "cache_key", "service_tier",
	"text_format", "settings",
}

// IdentityWord gives the word of context_ledger.identity: whether the cache identity is that of the comparable call.
func (c *Call) IdentityWord() string {
	for _, part := range c.Context.IdentityChanged {
		if slices.Contains(cacheParts, part) {
			return "changed"
		}
	}
	if c.Context.Comparable == "" && c.Context.IdentityChanged == nil {
		return "first"
	}
	return "same"
}

// Ours says whether a process with the ledger in it wrote the entry.
func (c *Call) Ours() bool { return c.Origin.EntryID != "" }

// Countable says whether a collector is to count the call: nobody has yet, nobody is against it, and its usage is its
// own.
func (c *Call) Countable() bool {
	return !c.Origin.Aggregate && (c.Origin.CountedBy == "" || c.Origin.CountedBy == semconv.CountedByNone)
}

// Judge puts a collector's verdict in the place of the process's, whose outcome and cause are kept in Process.
func (c *Call) Judge(found Verdict) {
	if c.Verdict.Outcome != "" && c.Verdict.By != semconv.JudgedByCollector {
		c.Process = Said{Outcome: c.Verdict.Outcome, Cause: c.Verdict.Cause}
	}
	found.By = semconv.JudgedByCollector
	c.Verdict = found
}

// Likeness tells a call without an id by what a span and a log record of it say alike: trace, model and counts. It is
// empty for a call with an id, and where the trace or the prompt is not known. Two spans of one likeness are two calls as
// a rule, a span and a log record of one are one.
func (c *Call) Likeness() string {
	if c.Ours() || c.Request.ResponseID != "" || c.Place.Trace.IsEmpty() || c.Usage.Input == nil {
		return ""
	}
	counts := fmt.Sprint(*c.Usage.Input, or0(c.Usage.CacheRead), or0(c.Usage.Output))
	return strings.Join([]string{c.Place.Trace.String(), c.Model.Requested, counts}, "\x00")
}
