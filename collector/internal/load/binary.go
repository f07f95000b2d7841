package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/otel-context-ledger/otel-context-ledger/collector/internal/port"
)

// tick is what /proc counts CPU time in, on every Linux that Go runs on.
const tick = time.Second / 100

// Binary is a collector that runs as a process of its own, as an operator would run it.
type Binary struct {
	// OTLP is where it takes spans by HTTP, Prometheus and Self where it tells its entries' metrics and its own.
	OTLP, Prometheus, Self string

	command *exec.Cmd
	output  *bytes.Buffer
	client  *http.Client
}

// Start runs a binary with one of collector/configs on free ports, its files in a folder, and waits until it serves.
// Further arguments are settings of the environment (NAME=value) or flags (--set=…). An error has what it printed.
func Start(binary, config, folder string, more ...string) (*Binary, error) {
	ports, err := port.Free(5)
	if err != nil {
		return nil, err
	}
	made := &Binary{
		OTLP: ports[0], Prometheus: ports[1], Self: ports[2], output: &bytes.Buffer{},
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	flags := []string{"--config", config}
	environment := append(os.Environ(),
		"STATE_DIRECTORY="+folder, "LEDGER_FILE="+filepath.Join(folder, "entries.jsonl"), "OTLP_HTTP_ENDPOINT="+made.OTLP,
		"PROMETHEUS_ENDPOINT="+made.Prometheus, "SELF_PORT="+made.Self[strings.LastIndex(made.Self, ":")+1:],
		"OTLP_GRPC_ENDPOINT="+ports[3], "HEALTH_ENDPOINT="+ports[4],
	)
	for _, one := range more {
		if strings.HasPrefix(one, "--") {
			flags = append(flags, one)
		} else {
			environment = append(environment, one)
		}
	}
	made.command = exec.Command(binary, flags...)
	made.command.Env, made.command.Stdout, made.command.Stderr = environment, made.output, made.output
	if err := made.command.Start(); err != nil {
		return nil, err
	}
	return made, made.await("http://" + ports[4])
}

// await waits until it serves; one that does not is ended.
func (b *Binary) await(health string) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b.Get(health) != "" {
			return nil
		}
	}
	b.Kill()
	return fmt.Errorf("it does not start: %s", b.output)
}

// Post sends spans in protobuf. The error says with which status they were refused.
func (b *Binary) Post(spans []byte) error {
	answer, err := b.client.Post("http://"+b.OTLP+"/v1/traces", "application/x-protobuf", bytes.NewReader(spans))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("refused with %s: %s", answer.Status, said)
	}
	return err
}

// Get gives the body at a URL, empty where nobody answers.
func (b *Binary) Get(url string) string { return Get(b.client, url) }

// Get gives the body at a URL, empty where nobody answers.
func Get(client *http.Client, url string) string {
	answer, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// Sum adds up the series of a metric that a page for Prometheus has.
func (b *Binary) Sum(page, metric string) float64 {
	total := 0.0
	for line := range strings.Lines(b.Get("http://" + page + "/metrics")) {
		rest, ok := strings.CutPrefix(line, metric)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		if fields := strings.Fields(rest[strings.LastIndex(rest, "}")+1:]); len(fields) > 0 {
			value, _ := strconv.ParseFloat(fields[0], 64)
			total += value
		}
	}
	return total
}

// CPU gives the time that the process has spent on the processors, in steps of 10 ms; Linux only.
func (b *Binary) CPU() (time.Duration, error) {
	text, err := os.ReadFile(b.proc("stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("/proc has another form here")
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, nil
}

// Resident gives the bytes of memory that the process has of its own, without the pages of files that it maps, which the
// system takes back where it needs them, and the most that it had in all; Linux only.
func (b *Binary) Resident() (now, most int64) {
	text, _ := os.ReadFile(b.proc("status"))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "RssAnon:":
			now = kib << 10
		case "VmHWM:":
			most = kib << 10
		}
	}
	return now, most
}

func (b *Binary) proc(file string) string {
	return filepath.Join("/proc", strconv.Itoa(b.command.Process.Pid), file)
}

// Stop lets it end what it does. An error has what it printed.
func (b *Binary) Stop() error {
	if err := b.command.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := b.command.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, b.output)
	}
	return nil
}

// Kill ends it at once, with SIGKILL.
func (b *Binary) Kill() {
	_ = b.command.Process.Kill()
	_ = b.command.Wait()
}
