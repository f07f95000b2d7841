package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/call"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/canonical"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/ledger"
	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/semconv"
)

func state(t testing.TB, change func(*ledger.Options)) *ledger.State {
	return stateAt(t, change, 0)
}

// stateAt is a ledger that was started so many seconds after second 0.
func stateAt(t testing.TB, change func(*ledger.Options), at int64) *ledger.State {
	options := options(t, canonical.Object{})
	change(&options)
	made, err := ledger.New(options, day0.Add(time.Duration(at)*time.Second))
	require.NoError(t, err)
	return made
}

func asIs(*ledger.Options) {}

// counted is a call of another instrumentation, so many seconds after second 0.
func counted(session string, number int, at, input, cached int64) *call.Call {
	began := day0.Add(time.Duration(at) * time.Second)
	span := pcommon.SpanID([8]byte{byte(number >> 16), byte(number >> 8), byte(number), 1})
	return &call.Call{
		Place: call.Place{Start: began, End: began.Add(time.Second), Span: span},
		Task:  call.Task{Session: session, SessionSource: semconv.SessionSourceConversationID},
		Model: call.Model{Surface: "anthropic", Provider: "anthropic", Requested: "claude-x"},
		Usage: call.Usage{Input: &input, CacheRead: &cached},
	}
}

func observe(made *ledger.State, one *call.Call) ledger.Seen {
	return made.Observe(one, one.Place.End)
}

// Options that cannot be kept are named, all of them.
func TestOptionsAreValidated(t *testing.T) {
	err := ledger.Options{CapturedBytes: -1}.Validate()
	assert.EqualError(t, err, "sessions must be above 0\nbytes must be above 0\ncaptured bytes must not be below 0\n"+
		"the idle time must be above 0\nthe lore of providers is missing")
	_, err = ledger.New(ledger.Options{}, day0)
	assert.Error(t, err)
	assert.NoError(t, options(t, canonical.Object{}).Validate())
}

// A span and a log record of one call without an id are one call, whichever comes first; the next call of the turn, in the
// same trace, is another one.
func TestSpanAndRecordOfOneCall(t *testing.T) {
	for _, recordFirst := range []bool{true, false} {
		made := state(t, asIs)
		span, record, next := counted("s", 1, 0, 20000, 0), counted("s", 1, 0, 20000, 0), counted("s", 2, 5, 21000, 20000)
		record.Place.Span = pcommon.SpanID{}
		for _, one := range []*call.Call{span, record, next} {
			one.Place.Trace = pcommon.TraceID{1}
		}
		pair := []*call.Call{span, record}
		if recordFirst {
			pair = []*call.Call{record, span}
		}

		assert.False(t, observe(made, pair[0]).Repeated)
		assert.True(t, observe(made, pair[1]).Repeated)
		assert.Equal(t, pair[0].Verdict, pair[1].Verdict)
		assert.False(t, observe(made, next).Repeated)
	}
}

// Calls without a time are judged as they come: none of them was forgotten.
func TestCallsWithoutATime(t *testing.T) {
	made := state(t, asIs)
	first, second := counted("s", 1, 0, 20000, 0), counted("s", 2, 0, 40000, 20000)
	for _, one := range []*call.Call{first, second} {
		one.Place.Start, one.Place.End = time.Time{}, time.Time{}
		made.Observe(one, day0)
	}
	assert.Equal(t, semconv.CacheOutcomeHit, second.Verdict.Outcome)
	assert.Empty(t, second.Verdict.Cause)
}

// A span and a log record of one call that come at the same time are one call, and both say the same of it.
func TestSpanAndRecordAtOnce(t *testing.T) {
	made := state(t, asIs)
	for number := range 2000 {
		span, record := counted("s", number, int64(number), 20000, 0), counted("s", number, int64(number), 20000, 0)
		span.Request.ResponseID, record.Request.ResponseID = fmt.Sprint("r", number), fmt.Sprint("r", number)
		record.Place.Span = pcommon.SpanID{}
		var repeated [2]bool
		var both sync.WaitGroup
		for at, one := range []*call.Call{span, record} {
			both.Go(func() { repeated[at] = observe(made, one).Repeated })
		}
		both.Wait()
		require.NotEqual(t, repeated[0], repeated[1])
		require.Equal(t, span.Verdict, record.Verdict)
	}
}

// No more sessions are held than the bound and one for each shard, and what was forgotten is counted.
func TestSessionsAreBounded(t *testing.T) {
	made := state(t, func(o *ledger.Options) { o.Sessions = 100 })
	for number := range 1000 {
		observe(made, counted(fmt.Sprintf("s%d", number), number, int64(number%60), 20000, 0))
	}
	stats := made.Stats()
	assert.LessOrEqual(t, stats.Sessions, int64(100+ledger.Shards))
	assert.Equal(t, int64(1000), stats.Sessions+stats.Evicted)
}

// No more bytes are held than the bound and one session for each shard, and no bytes of what was forgotten.
func TestBytesAreBounded(t *testing.T) {
	made := state(t, func(o *ledger.Options) { o.Bytes = 100_000; o.Idle = time.Minute })
	for number := range 2000 {
		observe(made, counted(fmt.Sprintf("s%d", number), number, 0, 20000, 0))
	}
	assert.LessOrEqual(t, made.Stats().Bytes, int64(100_000+ledger.Shards*1024))
	made.Sweep(day0.Add(time.Hour))
	stats := made.Stats()
	assert.Equal(t, int64(0), stats.Sessions)
	assert.Equal(t, int64(0), stats.Bytes)
	assert.Equal(t, int64(2000), stats.Evicted+stats.Expired)
}

// A session that was idle for longer than the bound is forgotten: its next call is that of an unknown one.
func TestIdleSessionsExpire(t *testing.T) {
	made := state(t, func(o *ledger.Options) { o.Idle = 10 * time.Minute })
	observe(made, counted("s", 1, 0, 20000, 0))
	assert.True(t, observe(made, counted("s", 2, 600, 21000, 20000)).Known)
	made.Sweep(day0.Add(2 * time.Hour))
	assert.Equal(t, ledger.Stats{Expired: 1}, made.Stats())
	late := counted("s", 3, 7300, 22000, 20000)
	assert.False(t, observe(made, late).Known)
	assert.Equal(t, semconv.MissCausePreviousUnknown, late.Verdict.Cause)
}

// A forgotten session makes every unknown one uncertain, even where this ledger sees all calls: it may be that one.
func TestEvictionMakesUncertain(t *testing.T) {
	made := state(t, func(o *ledger.Options) { o.Alone, o.Sessions, o.Idle = true, 1, time.Minute })
	first := counted("s", 1, 120, 20000, 0)
	observe(made, first)
	assert.Equal(t, semconv.MissCauseColdStart, first.Verdict.Cause)
	for number := range 200 {
		observe(made, counted(fmt.Sprintf("other%d", number), number, 121, 20000, 0))
	}
	again := counted("s", 3, 130, 21000, 0)
	observe(made, again)
	assert.Equal(t, semconv.MissCausePreviousUnknown, again.Verdict.Cause)
}

type store map[string][]byte

func (s store) put(key string, snapshot []byte) error { s[key] = snapshot; return nil }

var errFull = errors.New("disk full")

// full puts into the store what it has room for.
func (s store) full(refuses func(key string) bool) func(key string, snapshot []byte) error {
	return func(key string, snapshot []byte) error {
		if refuses(key) {
			return errFull
		}
		return s.put(key, snapshot)
	}
}

// whileFull says what else went wrong than that the disk was full, which it had to be.
func whileFull(err error) error {
	if !errors.Is(err, errFull) {
		return fmt.Errorf("not %w: %w", errFull, err)
	}
	return nil
}

func (s store) get(key string) ([]byte, error) { return s[key], nil }

// A session that was loaded is idle since it was told of, not since it was loaded.
func TestLoadedSessionsExpire(t *testing.T) {
	idle := 10 * time.Minute
	brief := func(o *ledger.Options) { o.Idle = idle }
	made, kept, loaded := state(t, brief), store{}, state(t, brief)
	observe(made, counted("s", 1, 0, 20000, 0))
	_, err := made.Save(kept.put)
	require.NoError(t, err)
	require.NoError(t, loaded.Load(kept.get, day0.Add(idle)))
	loaded.Sweep(day0.Add(idle))
	assert.Equal(t, int64(1), loaded.Stats().Sessions)
	loaded.Sweep(day0.Add(idle + time.Minute))
	assert.Equal(t, ledger.Stats{Expired: 1}, loaded.Stats())
}

// What was saved is what is loaded, and only shards that were changed are saved again.
func TestSnapshot(t *testing.T) {
	made, kept := state(t, asIs), store{}
	for number := range 500 {
		observe(made, counted(fmt.Sprintf("s%d", number), number, int64(number%60), 20000, 0))
	}
	written, err := made.Save(kept.put)
	require.NoError(t, err)
	assert.Len(t, kept, ledger.Shards+1)
	assert.Positive(t, written)

	written, err = made.Save(kept.put)
	require.NoError(t, err)
	assert.Zero(t, written, "nothing was changed")
	observe(made, counted("s1", 1000, 70, 21000, 20000))
	again := store{}
	_, err = made.Save(again.put)
	require.NoError(t, err)
	assert.Len(t, again, 1, "one shard was changed")

	loaded := state(t, asIs)
	require.NoError(t, loaded.Load(kept.get, day0.Add(time.Minute)))
	assert.Equal(t, int64(500), loaded.Stats().Sessions)
	assert.True(t, observe(loaded, counted("s7", 2000, 80, 21000, 20000)).Known)
}

// A ledger that sees every call and was closed knows, when it is loaded, that a session it does not know is a new one. If
// it was killed, or a part of it is lost, such a session may have begun before.
func TestKnowingEverySessionOutlivesARestart(t *testing.T) {
	alone := func(o *ledger.Options) { o.Alone = true }
	for name, one := range map[string]struct {
		end   func(*ledger.State, store) error
		cause string
	}{
		"closed":          {closed, semconv.MissCauseColdStart},
		"killed":          {saved, semconv.MissCausePreviousUnknown},
		"closed and lost": {closedAndLost, semconv.MissCausePreviousUnknown},
		"closed in part":  {closedInPart, semconv.MissCausePreviousUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			made, kept := state(t, alone), store{}
			observe(made, counted("old", 1, 4000, 20000, 0))
			require.NoError(t, one.end(made, kept))
			loaded := stateAt(t, alone, 4100)
			_ = loaded.Load(kept.get, day0.Add(4100*time.Second))
			next := counted("next", 2, 4200, 20000, 0)
			observe(loaded, next)
			assert.Equal(t, one.cause, next.Verdict.Cause)
			_, err := loaded.Save(kept.put)
			require.NoError(t, err)
			again := stateAt(t, alone, 4300)
			_ = again.Load(kept.get, day0.Add(4300*time.Second))
			another := counted("another", 3, 4400, 20000, 0)
			observe(again, another)
			assert.Equal(t, semconv.MissCausePreviousUnknown, another.Verdict.Cause, "it was not closed again")
		})
	}
}

func closed(made *ledger.State, to store) error {
	_, err := made.Close(to.put)
	return err
}

func saved(made *ledger.State, to store) error {
	_, err := made.Save(to.put)
	return err
}

func closedAndLost(made *ledger.State, to store) error {
	_, err := made.Close(to.put)
	to[ledger.Key(0)] = []byte("broken")
	return err
}

// closedInPart finds a store whose disk is full when a shard is to be kept.
func closedInPart(made *ledger.State, to store) error {
	_, err := made.Close(to.full(func(key string) bool { return key != ledger.KnownKey }))
	return whileFull(err)
}

// What was loaded whole need not be saved again.
func TestWhatWasLoadedIsNotSavedAgain(t *testing.T) {
	made, kept := state(t, asIs), store{}
	observe(made, counted("s", 1, 0, 20000, 0))
	_, err := made.Close(kept.put)
	require.NoError(t, err)
	loaded := state(t, asIs)
	require.NoError(t, loaded.Load(kept.get, day0))
	written, err := loaded.Save(store{}.put)
	require.NoError(t, err)
	assert.Zero(t, written)
}

// A shard that cannot be read starts empty and is counted; the others are there.
func TestCorruptSnapshot(t *testing.T) {
	made, kept := state(t, asIs), store{}
	for number := range 500 {
		observe(made, counted(fmt.Sprintf("s%d", number), number, 0, 20000, 0))
	}
	_, err := made.Save(kept.put)
	require.NoError(t, err)
	kept[ledger.Key(0)][20] ^= 1
	kept[ledger.Key(1)] = kept[ledger.Key(1)][:5]
	kept[ledger.Key(2)][0] = ledger.Version + 1
	kept[ledger.Key(3)] = nil

	loaded := state(t, asIs)
	err = loaded.Load(kept.get, day0)
	require.ErrorIs(t, err, ledger.ErrCorrupt)
	assert.ErrorContains(t, err, "sessions-00: snapshot is corrupt: wrong checksum")
	assert.ErrorContains(t, err, "sessions-01: snapshot is corrupt: 5 bytes")
	assert.ErrorContains(t, err, "sessions-02: snapshot is corrupt: version 2")
	stats := loaded.Stats()
	assert.Equal(t, int64(3), stats.LostShards)
	assert.Greater(t, stats.Sessions, int64(400))
}

// A store that fails loses nothing: what could not be written is written next time, what could not be read is counted.
func TestFailingStore(t *testing.T) {
	broken := errors.New("disk full")
	made, kept := state(t, asIs), store{}
	observe(made, counted("s", 1, 0, 20000, 0))
	_, err := made.Save(func(string, []byte) error { return broken })
	require.ErrorIs(t, err, broken)
	written, err := made.Save(kept.put)
	require.NoError(t, err)
	assert.Positive(t, written)

	loaded := state(t, asIs)
	require.ErrorIs(t, loaded.Load(func(string) ([]byte, error) { return nil, broken }, day0), broken)
	assert.Equal(t, int64(ledger.Shards), loaded.Stats().LostShards)
}

// A session that was saved and has been idle for too long since is not loaded.
func TestOldSnapshot(t *testing.T) {
	made, kept := state(t, asIs), store{}
	observe(made, counted("s", 1, 0, 20000, 0))
	_, err := made.Save(kept.put)
	require.NoError(t, err)
	loaded := state(t, asIs)
	require.NoError(t, loaded.Load(kept.get, day0.Add(2*time.Hour)))
	assert.Equal(t, ledger.Stats{}, loaded.Stats())
}

// Many pipelines tell of calls, save and sweep at once: each session's calls are held against its own.
func TestAtOnce(t *testing.T) {
	made := state(t, asIs)
	var all sync.WaitGroup
	for session := range 20 {
		all.Go(func() {
			for at := range 50 {
				input := int64(20000 + 100*at)
				one := counted(fmt.Sprintf("s%d", session), 100*session+at, int64(at), input, input-100)
				if seen := observe(made, one); at > 0 && (!seen.Known || one.Verdict.Cause != "") {
					t.Errorf("session %d, call %d: %+v, %s", session, at, seen, one.Verdict.Cause)
				}
			}
		})
	}
	all.Go(func() {
		for range 10 {
			_, err := made.Save(store{}.put)
			assert.NoError(t, err)
			made.Sweep(day0)
		}
	})
	all.Wait()
	assert.Equal(t, int64(20), made.Stats().Sessions)
}

// Calls take the place of earlier ones of their sessions, which are being saved meanwhile, and which sessions of other names
// go on from: what is read of a call is never written over.
func TestPlacesAreTakenWhileCallsAreRead(t *testing.T) {
	made := state(t, asIs)
	var all, saving sync.WaitGroup
	saved, ended := store{}, make(chan struct{})
	saving.Go(func() {
		for told := true; told; {
			select {
			case <-ended:
				told = false
			default:
			}
			_, err := made.Save(saved.put)
			assert.NoError(t, err)
		}
	})
	for session := range 8 {
		all.Go(func() {
			for at := range 200 {
				one := grown(fmt.Sprintf("s%d", session), session, at)
				if seen := observe(made, one); at > 0 && !seen.Known {
					t.Errorf("session %d, call %d: %+v", session, at, seen)
				}
				other := grown(fmt.Sprintf("renamed %d.%d", session, at), session, at+1)
				other.Origin.EntryID += " renamed"
				if seen := observe(made, other); at > 0 && (!seen.Known || other.Verdict.Outcome != semconv.CacheOutcomeHit) {
					t.Errorf("session %d renamed, call %d: %+v, %s", session, at, seen, other.Verdict.Outcome)
				}
			}
		})
	}
	all.Wait()
	close(ended)
	saving.Wait()
	loaded := state(t, asIs)
	require.NoError(t, loaded.Load(saved.get, day0))
	assert.Equal(t, made.Stats().Sessions, loaded.Stats().Sessions)
	assert.Equal(t, made.Stats().Bytes, loaded.Stats().Bytes)
}

// grown is an entry whose history has three messages more than that of the one before.
func grown(session string, history, at int) *call.Call {
	one := counted(session, 0, int64(at), int64(20000+100*at), int64(20000+100*at-100))
	one.Place.Span, one.Task.SessionSource = pcommon.SpanID{}, semconv.SessionSourceLineage
	one.Origin.EntryID, one.Origin.DigestScheme = fmt.Sprintf("e %d.%d", history, at), "xxh3"
	for message := int64(max(0, 3*at-10)); message <= int64(3*at+3); message++ {
		one.Context.Locator = append(one.Context.Locator, call.Boundary{
			Messages: message, Bytes: 1000 * (message + 1), Digest: fmt.Sprintf("%d-%d", history, message),
		})
	}
	return one
}

// Captured requests of many sessions come at once, while others are forgotten.
func TestCapturedAtOnce(t *testing.T) {
	made := state(t, func(o *ledger.Options) { o.CapturedBytes = 1 << 20; o.Sessions = 10 })
	var all sync.WaitGroup
	for session := range 16 {
		all.Go(func() {
			messages := [][]byte{}
			for at := range 20 {
				messages = append(messages, []byte(fmt.Sprintf(`{"role":"user","content":"%d"}`, at)))
				one := counted(fmt.Sprintf("s%d", session), 100*session+at, int64(at), 20000, 0)
				one.Content = &call.Content{Messages: messages}
				observe(made, one)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, made.Stats().CapturedBytes, int64(1<<20))
}

// No text of a request is in a snapshot, whatever was captured.
func TestNoTextIsSaved(t *testing.T) {
	const secret = "never touch the production database"
	made, kept := state(t, asIs), store{}
	one := counted("s", 1, 0, 20000, 0)
	part := func(text string) [][]byte { return [][]byte{[]byte(fmt.Sprintf(`{"role":"user","content":%q}`, text))} }
	one.Content = &call.Content{Tools: part(secret), System: part(secret), Messages: part(secret)}
	assert.Equal(t, ledger.Seen{}, observe(made, one))
	assert.NotEmpty(t, one.Context.Locator)
	assert.Positive(t, made.Stats().CapturedBytes)
	_, err := made.Save(kept.put)
	require.NoError(t, err)
	for _, snapshot := range kept {
		assert.NotContains(t, string(snapshot), secret)
	}
}

// Where nothing is to be captured, or what was captured is no JSON, a call is judged by its counts.
func TestUnreadableContent(t *testing.T) {
	for _, parts := range [][][]byte{nil, {[]byte("{")}} {
		made := state(t, asIs)
		one := counted("s", 1, 0, 20000, 0)
		one.Content = &call.Content{Messages: parts}
		one.Task.Session, one.Place.Trace = "", pcommon.TraceID([16]byte{7})
		observe(made, one)
		assert.Empty(t, one.Context.Locator)
		assert.Equal(t, semconv.MissCausePreviousUnknown, one.Verdict.Cause)
		assert.Equal(t, "trace-07000000000000000000000000000000", one.Task.Session)
	}
	made := state(t, func(o *ledger.Options) { o.CapturedBytes = 0 })
	one := counted("s", 1, 0, 20000, 0)
	one.Content = &call.Content{Messages: [][]byte{[]byte(`{"role":"user","content":"hi"}`)}}
	observe(made, one)
	assert.Empty(t, one.Context.Locator)
}

// Tools that a client told by name and digest are compared by these.
func TestToldTools(t *testing.T) {
	tools := func(names ...string) []call.Tool {
		told := []call.Tool{}
		for _, name := range names {
			told = append(told, call.Tool{Name: name, Digest: "d-" + name})
		}
		return told
	}
	other := []call.Tool{{Name: "read", Digest: "other"}, {Name: "write", Digest: "d-write"}}
	for _, one := range []struct {
		now      []call.Tool
		cause    string
		detail   []string
		evidence []string
	}{
		{tools("read", "write", "grep"), semconv.MissCauseToolsChanged, []string{"added"}, []string{"tools_told", "added=grep"}},
		{tools("write"), semconv.MissCauseToolsChanged, []string{"removed"}, []string{"tools_told", "removed=read"}},
		{tools("write", "read"), semconv.MissCauseToolsReordered, nil, []string{"tools_told"}},
		{other, semconv.MissCauseToolsChanged, nil, []string{"tools_told"}},
	} {
		made := state(t, asIs)
		first, second := counted("s", 1, 0, 60000, 0), counted("s", 2, 30, 61000, 0)
		first.Context.Tools, second.Context.Tools = tools("read", "write"), one.now
		observe(made, first)
		observe(made, second)
		assert.Equal(t, one.cause, second.Verdict.Cause)
		assert.Equal(t, one.detail, second.Verdict.Detail)
		assert.Equal(t, one.evidence, second.Verdict.Evidence)
	}
}
