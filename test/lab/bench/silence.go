package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// silence counts what the manager and one Infra's daemons write while nothing changes.
func (b *bench) silence(ctx context.Context, idle time.Duration) ([]row, error) {
	if idle == 0 {
		return nil, nil
	}
	const settled = 30 * time.Second
	for {
		writes, err := writesDuring(ctx, settled)
		if err != nil {
			return nil, err
		}
		if len(writes) == 0 {
			break
		}
		b.Say("not settled yet: %d writes in %s, the last: %s", len(writes), settled, writes[len(writes)-1])
	}
	b.Say("settled; counting writes for %s", idle)
	writes, err := writesDuring(ctx, idle)
	if err != nil {
		return nil, err
	}
	rows := []row{{fmt.Sprintf("writes of the manager and one Infra's daemons in %s of nothing", idle), fmt.Sprint(len(writes)), "0"}}
	for _, w := range writes {
		rows = append(rows, row{"", w, ""})
	}
	return rows, nil
}

// writesDuring lets time pass and then reads what the API server's audit log got. The log leaves out the leases of leader
// election (node/config/audit.yaml).
func writesDuring(ctx context.Context, d time.Duration) ([]string, error) {
	log, err := os.Open(os.Getenv("AUDIT_LOG")) //nolint:gosec // named by `lab env`
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	return ourWrites(log)
}

func ourWrites(log io.Reader) ([]string, error) {
	var all []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if e.ours() && e.writes() {
			all = append(all, e.String())
		}
	}
	return all, lines.Err()
}

type auditEvent struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
}

// ours says whether the manager or one of the Infra's daemons asked.
func (e auditEvent) ours() bool {
	return strings.HasPrefix(e.User.Username, "system:serviceaccount:oooi-system:") ||
		strings.HasPrefix(e.User.Username, "system:serviceaccount:clusters:c1-")
}

func (e auditEvent) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

func (e auditEvent) String() string {
	o := e.ObjectRef
	text := fmt.Sprintf("%s: %s %s/%s/%s %s", strings.TrimPrefix(e.User.Username, "system:serviceaccount:"), e.Verb, o.Resource, o.Namespace, o.Name, o.Subresource)
	return strings.TrimSpace(text)
}
