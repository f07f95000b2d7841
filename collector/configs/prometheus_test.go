package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A real Prometheus gets the same numbers by scraping and by remote write, for the same agent: its service is the job,
// the collector the instance.
func TestPrometheus(t *testing.T) {
	name := os.Getenv("PROMETHEUS")
	if name == "" {
		t.Skip("PROMETHEUS names no binary of Prometheus")
	}
	scraped := start(t, "agent.yaml", t.TempDir())
	server := startPrometheus(t, name, scraped.prometheus)
	pushing := start(t, "remote-write.yaml", t.TempDir(), "REMOTE_WRITE_ENDPOINT=http://"+server+"/api/v1/write")
	for _, run := range []*running{scraped, pushing} {
		for turn := 1; turn <= 3; turn++ {
			run.sendSpans(t, calls("s1", turn, nil))
		}
	}
	for _, query := range []string{
		`sum by (job, context_ledger_cache_outcome) (context_ledger_calls_total)`,
		`sum by (job, context_ledger_token_source) (context_ledger_input_tokens_total)`,
	} {
		want := map[string]map[string]string{
			"context_ledger_cache_outcome": {"cold": "2", "hit": "4"},
			"context_ledger_token_source":  {"cache_read": "61440", "uncached": "61440"},
		}
		assert.Eventually(t, func() bool {
			label, found := ask(server, query)
			return assert.ObjectsAreEqual(want[label], found)
		}, time.Minute, 200*time.Millisecond, query)
	}
	_, instances := ask(server, `count by (instance) (context_ledger_calls_total{context_ledger_cache_outcome="hit"})`)
	assert.Len(t, instances, 2, "two collectors write to two series")
	scraped.stop(t)
	pushing.stop(t)
}

// DB05: a call that came once, long ago, is one call for `increase()`, because Prometheus saw its series at 0 before; a
// series that appears with its value is no increase.
func TestOneCallIsAnIncrease(t *testing.T) {
	name := os.Getenv("PROMETHEUS")
	if name == "" {
		t.Skip("PROMETHEUS names no binary of Prometheus")
	}
	told := map[string]string{}
	for zeroFirst, want := range map[string]string{"10s": "1", "0s": "0"} {
		run := start(t, "agent.yaml", t.TempDir(), "--set=connectors::context_ledger::zero_first="+zeroFirst)
		server := startPrometheus(t, name, run.prometheus)
		run.sendSpans(t, calls("s1", 1, nil))
		value := func(query string) string {
			_, found := ask(server, `label_replace(`+query+`, "is", "it", "", "")`)
			return found["it"]
		}
		require.Eventually(t, func() bool {
			told[zeroFirst] = value(`sum(context_ledger_calls_total)`)
			return told[zeroFirst] == "1" && value(`sum(count_over_time(context_ledger_calls_total[10s])) > bool 5`) == "1"
		}, time.Minute, 200*time.Millisecond)
		assert.Eventually(t, func() bool { return value(`round(sum(increase(context_ledger_calls_total[5m])))`) == want },
			time.Minute, 200*time.Millisecond, zeroFirst)
		run.stop(t)
	}
	assert.Equal(t, map[string]string{"10s": "1", "0s": "1"}, told)
}

// startPrometheus starts a Prometheus that scrapes a collector and takes remote writes, and gives its address.
func startPrometheus(t *testing.T, name, scraped string) string {
	t.Helper()
	folder, address := t.TempDir(), free(t)
	config := fmt.Sprintf("scrape_configs:\n- job_name: ledger\n  honor_labels: true\n  scrape_interval: 200ms\n"+
		"  static_configs:\n  - targets: [%q]\n", scraped)
	file := filepath.Join(folder, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	command := exec.Command(name, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address, "--web.enable-remote-write-receiver")
	output := &bytes.Buffer{}
	command.Stdout, command.Stderr = output, output
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	require.Eventually(t, func() bool { return get("http://"+address+"/-/ready") != "" }, time.Minute,
		100*time.Millisecond, "%s", output)
	return address
}

// ask gives the values that Prometheus has by the last label of a query, if they are all of one job, and that label.
func ask(server, query string) (string, map[string]string) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	body := get("http://" + server + "/api/v1/query?query=" + url.QueryEscape(query))
	if json.Unmarshal([]byte(body), &answer) != nil {
		return "", nil
	}
	last, found := "", map[string]string{}
	for _, row := range answer.Data.Result {
		for label, value := range row.Metric {
			if label == "job" && value != "agents" {
				return "", nil
			}
			if label != "job" {
				last = label
				found[value] = fmt.Sprint(row.Value[1])
			}
		}
	}
	return last, found
}
