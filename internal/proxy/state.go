package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// acknowledged is the file with the last intent that Envoy acknowledged.
func acknowledged(stateDir string) string { return filepath.Join(stateDir, "acknowledged.json") }

// keep stores an intent for the next run of the sidecar; without a state directory it does nothing.
func keep(stateDir string, in intent.Intent) error {
	if stateDir == "" {
		return nil
	}
	content, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encoding the intent: %w", err)
	}
	return daemon.WriteFile(acknowledged(stateDir), content)
}

// kept reads the intent of an earlier run; false if there is none.
func kept(stateDir string) (in intent.Intent, found bool, err error) {
	if stateDir == "" {
		return in, false, nil
	}
	content, err := os.ReadFile(acknowledged(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return in, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &in)
	}
	return in, err == nil, err
}

// look reads the addresses of this machine's network devices, for an instance.
func look(pod netip.Addr, instance int) (intent.Place, error) {
	here := intent.Place{Networks: map[netip.Addr]netip.Prefix{}, Devices: map[netip.Addr]string{}, Pod: pod, Instance: instance}
	devices, err := net.Interfaces()
	if err != nil {
		return here, fmt.Errorf("listing network devices: %w", err)
	}
	for _, device := range devices {
		addrs, _ := device.Addrs() // a device that has just vanished has none
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				addr := prefix.Addr().Unmap()
				here.Networks[addr], here.Devices[addr] = prefix, device.Name
			}
		}
	}
	return here, nil
}
