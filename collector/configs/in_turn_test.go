package configs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Behind a load balancer that gives one collector a request and the next one to the other, each collector says of a call
// what one that knows them all would say, or that it cannot know; never that a session is new that is not. Every call is
// counted once: of the two ways in which agents tell of a call, spans alone are counted, for its record may go elsewhere.
func TestCollectorsInTurn(t *testing.T) {
	const sessions, turns = 60, 14
	want := single(t, "turn-", sessions, turns)
	var runs []*running
	for range 2 {
		runs = append(runs, start(t, "agent.yaml", t.TempDir(), "--set=processors::context_ledger::state::alone=false",
			"--set=processors::context_ledger::state::replicas=calls", "--set=service::pipelines::logs::exporters=[file]"))
	}
	made, number := fleet("turn-", sessions), 0
	const together = 4
	for range turns {
		for first := 0; first < sessions; first += together {
			spans, logs := exchange(made[first : first+together])
			runs[number%2].sendSpans(t, spans)
			if number++; number%3 == 0 {
				runs[number%2].sendLogs(t, logs)
			}
		}
	}
	assert.Eventually(t, func() bool {
		return runs[0].counted(t)+runs[1].counted(t) == sessions*turns
	}, time.Minute, 100*time.Millisecond)
	var heard [][]said
	for _, run := range runs {
		heard = append(heard, run.heard(t))
		assert.Positive(t, run.counted(t))
	}
	assert.Len(t, namedIn(heard...), sessions*turns)
	unsure := sum(unlike(t, want, heard...))
	t.Logf("%d calls, %d of them not known to a collector that was told of every other request", sessions*turns, unsure)
	assert.Less(t, unsure, sessions*turns*3/4)
	for _, run := range runs {
		run.stop(t)
	}
}
