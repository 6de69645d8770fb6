package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOurWritesAreThoseOfTheManagerAndTheInfrasDaemons(t *testing.T) {
	log := `{"verb":"patch","user":{"username":"system:serviceaccount:oooi-system:oooi-controller-manager"},"objectRef":{"resource":"infras","namespace":"clusters","name":"c1","subresource":"status"}}
{"verb":"get","user":{"username":"system:serviceaccount:oooi-system:oooi-controller-manager"},"objectRef":{"resource":"infras","namespace":"clusters","name":"c1"}}
{"verb":"watch","user":{"username":"system:serviceaccount:clusters:c1-dns"},"objectRef":{"resource":"dnsservers","namespace":"clusters"}}
{"verb":"create","user":{"username":"system:serviceaccount:clusters:c1-dhcp"},"objectRef":{"resource":"dhcpleases","namespace":"clusters","name":"c1-dhcp.1"}}
{"verb":"update","user":{"username":"system:node:node1"},"objectRef":{"resource":"pods","namespace":"clusters","name":"c1-dns-0"}}
`
	got, err := ourWrites(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"oooi-system:oooi-controller-manager: patch infras/clusters/c1 status",
		"clusters:c1-dhcp: create dhcpleases/clusters/c1-dhcp.1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
