package normalise

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/facts"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/spelling"
)

// origins knows where calls go: the words for providers, and what is served at a host, by the operator's word, else by
// the facts.
type origins struct {
	providers map[string]string
	standard  map[string]bool
	hosts     map[string]Host
	lore      *facts.Lore
	known     sync.Map
	count     atomic.Int64
}

// maxKnown is how many hosts are remembered; calls go to few, and what is beyond is looked up each time.
const maxKnown = 1024

func newOrigins(providers map[string]string, hosts map[string]Host, lore *facts.Lore) *origins {
	standard := map[string]bool{}
	for _, provider := range providers {
		standard[provider] = true
	}
	return &origins{providers: providers, standard: standard, hosts: hosts, lore: lore}
}

// name says which provider and which of its products a call went to. A host says more than the name of an
// instrumentation's client does: that of OpenAI is used for dozens of others.
func (o *origins) name(into *reading) {
	model := &into.call.Model
	model.Provider = o.provider(model.Provider)
	if model.Endpoint == "" {
		return
	}
	model.Endpoint = endpoint(model.Endpoint, into.port)
	host := o.at(model.Endpoint)
	model.Surface = host.Surface
	if host.Provider != "" {
		model.Provider = host.Provider
	}
}

// endpoint is a host with a port that may stand beside it.
func endpoint(host, port string) string {
	if port == "" || strings.Contains(host, ":") {
		return strings.ToLower(host)
	}
	return address(host, port)
}

// at gives what is served at a host, looked up once.
func (o *origins) at(endpoint string) Host {
	if found, ok := o.known.Load(endpoint); ok {
		return found.(Host)
	}
	found := o.look(endpoint)
	if o.count.Add(1) <= maxKnown {
		o.known.Store(strings.Clone(endpoint), found)
	}
	return found
}

func (o *origins) look(endpoint string) Host {
	bare := endpoint
	if at := strings.LastIndexByte(endpoint, ':'); at >= 0 && strings.Count(endpoint, ":") == 1 {
		bare = endpoint[:at]
	}
	host, named := o.hosts[endpoint]
	if !named {
		host, named = o.hosts[bare]
	}
	if !named && o.lore != nil {
		host.Surface = o.lore.At(bare)
	}
	if host.Provider == "" && host.Surface != "" && o.lore != nil {
		if provider := o.lore.Of(host.Surface).Provider; provider != unknownSurface {
			host.Provider = provider
		}
	}
	return host
}

// provider gives the standard's word for a provider; what has none stays as it is.
func (o *origins) provider(said string) string {
	for word := strings.ToLower(said); word != ""; {
		if o.standard[word] {
			return word
		}
		if known, ok := o.providers[word]; ok {
			return known
		}
		at := strings.LastIndexByte(word, '.')
		word = word[:max(at, 0)]
	}
	return spelling.Name(said, spelling.MaxName)
}

// complete fills in what follows from what was read, and spells names as they are spelled everywhere.
func (n *Normaliser) complete(into *reading) {
	found := into.call
	n.session(into)
	if found.Task.Kind == "" {
		found.Task.Kind = semconv.RequestKindAgent
	}
	if found.Model.Surface == "" {
		found.Model.Surface = unknownSurface
	}
	if n.origin.lore != nil && !n.origin.lore.Of(found.Model.Surface).Caches && found.Usage.CacheRead == nil {
		found.Usage.Report = semconv.CacheReportUnsupported
	}
	n.digest(found, into.tools)
	n.spell(found)
}

// session says how the session is known: the program named it under our own name, a conversation has an id, or the cache
// key stands for it, as a digest, for it may hold anything.
func (n *Normaliser) session(into *reading) {
	task := &into.call.Task
	switch {
	case task.Session != "" && task.SessionSource != "":
	case task.Session != "" && into.named:
		task.SessionSource = semconv.SessionSourceExplicit
	case task.Session != "":
		task.SessionSource = semconv.SessionSourceConversationID
	case into.cacheKey != "":
		task.Session = "key-" + n.export.Digits(canonical.OfText(into.cacheKey))
		task.SessionSource = semconv.SessionSourceCacheKey
	}
}

// digest makes the two hashes of the tools from those that the client made of each.
func (n *Normaliser) digest(found *call.Call, tools []call.Tool) {
	if len(tools) == 0 {
		return
	}
	found.Context.Tools = tools
	digests := make([]canonical.Digest, len(tools))
	for i, tool := range tools {
		digests[i] = canonical.OfText(tool.Name + "\x00" + tool.Digest)
	}
	found.Context.ToolWire = n.export.Write(canonical.Joined(digests...))
	found.Context.ToolSchema = n.export.Write(canonical.Joined(set(digests)...))
}

// set gives digests in one order, each once.
func set(digests []canonical.Digest) []canonical.Digest {
	ordered := slices.SortedFunc(slices.Values(digests), func(a, b canonical.Digest) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ordered)
}

func (n *Normaliser) spell(found *call.Call) {
	found.Task.Session = spelling.Session(found.Task.Session, n.export)
	found.Model.Requested = spelling.Model(found.Model.Requested)
	found.Model.Served = spelling.Model(found.Model.Served)
	for _, name := range []*string{
		&found.Task.Agent, &found.Model.Endpoint, &found.Model.ClientVersion, &found.Request.ResponseID,
		&found.Request.ErrorType, &found.Context.PolicyWire,
	} {
		*name = spelling.Name(*name, spelling.MaxName)
	}
	for _, word := range []*string{&found.Model.Effort, &found.Model.ServiceTier, &found.Model.API} {
		*word = spelling.Word(*word)
	}
	for i, reason := range found.Request.FinishReasons {
		found.Request.FinishReasons[i] = spelling.Word(reason)
	}
}

// compaction keeps of what was read what a compaction is told by: its own numbers, and whose session it was.
func compaction(found *call.Call) call.Call {
	return call.Call{
		Task:       call.Task{Session: found.Task.Session, SessionSource: found.Task.SessionSource, Agent: found.Task.Agent},
		Model:      found.Model,
		Compaction: found.Compaction,
		Origin:     found.Origin,
	}
}
