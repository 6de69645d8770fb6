package audited

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Limits of the manager's container, from its manifest.
func Limits() (corev1.ResourceList, error) {
	const manifest = "config/manager/manager.yaml"
	text, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	manager := &appsv1.Deployment{}
	if err := yaml.Unmarshal(text, manager); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	return manager.Spec.Template.Spec.Containers[0].Resources.Limits, nil
}

// Confine makes cgroups (v1, as on this bench's machines) with limits, for a container; a process is limited once it writes its PID into
// their cgroup.procs. As by a kubelet, processor time is limited per tenth of a second.
func Confine(container string, limits corev1.ResourceList) (all []string, err error) {
	const period = 100_000
	for _, c := range []struct{ controller, file, value string }{
		{"memory", "memory.limit_in_bytes", strconv.FormatInt(limits.Memory().Value(), 10)},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(period)},
		{"cpu", "cpu.cfs_quota_us", strconv.FormatInt(limits.Cpu().MilliValue()*period/1000, 10)},
	} {
		dir := filepath.Join("/sys/fs/cgroup", c.controller, fmt.Sprintf("oooi-bench-%d-%s", os.Getpid(), container))
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return all, err
		}
		if len(all) == 0 || all[len(all)-1] != dir {
			all = append(all, dir)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.value), 0o600); err != nil {
			return all, fmt.Errorf("limiting %s: %w", container, err)
		}
	}
	return all, nil
}
