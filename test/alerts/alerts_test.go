// Package alerts tries the alerts with Prometheus' own promtool.
package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

type cases struct {
	RuleFiles          []string `json:"rule_files"`
	EvaluationInterval string   `json:"evaluation_interval"`
	Tests              []*struct {
		Name        string `json:"name"`
		Interval    string `json:"interval"`
		InputSeries any    `json:"input_series"`
		Alerts      []struct {
			At     string  `json:"eval_time"`
			Alert  string  `json:"alertname"`
			Expect []alert `json:"exp_alerts,omitempty"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

type alert struct {
	Labels map[string]string `json:"exp_labels"`
}

func read[T any](t *testing.T, path string) (into T) {
	t.Helper()
	text, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(yaml.UnmarshalStrict(text, &into)).To(Succeed())
	return into
}

// group is a group of rules, whose annotations are left out for promtool: their texts are read by people.
type group struct {
	Name     string           `json:"name"`
	Interval string           `json:"interval,omitempty"`
	Rules    []map[string]any `json:"rules"`
}

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	var rule struct {
		Spec struct {
			Groups []group `json:"groups"`
		} `json:"spec"`
	}
	text, err := os.ReadFile("../../config/components/monitoring/alerts.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(text, &rule)).To(Succeed())
	writes := func(name string, what any) {
		text, err := yaml.Marshal(what)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(dir, name), text, 0o600)).To(Succeed())
	}
	writes("whole.yaml", map[string]any{"groups": rule.Spec.Groups})
	out, err := exec.Command("promtool", "check", "rules", filepath.Join(dir, "whole.yaml")).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))

	all := read[cases](t, "alerts.yaml")
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, c := range all.Tests {
		for _, a := range c.Alerts {
			fires[a.Alert] = fires[a.Alert] || len(a.Expect) > 0
			silent[a.Alert] = silent[a.Alert] || len(a.Expect) == 0
		}
	}
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			name, is := r["alert"].(string)
			if !is {
				continue // it records
			}
			g.Expect(fires[name]).To(BeTrue(), "%s fires in no case", name)
			g.Expect(silent[name]).To(BeTrue(), "%s is silent in no case", name)
			delete(r, "annotations")
		}
	}
	writes("rules.yaml", map[string]any{"groups": rule.Spec.Groups})
	writes("alerts.yaml", all)
	out, err = exec.Command("promtool", "test", "rules", filepath.Join(dir, "alerts.yaml")).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
}
