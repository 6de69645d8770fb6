package server

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
)

// newCache makes CoreDNS' cache. The cache has no setters, so its own setup reads the settings, as tokens instead of text: no value can begin a
// directive.
func newCache(ttl time.Duration, next plugin.Handler) (*cache.Cache, error) {
	setup, err := caddy.DirectiveAction("dns", "cache")
	if err != nil {
		return nil, err
	}
	controller := caddy.NewTestController("dns", "") // the only exported constructor of a controller
	controller.ServerBlockKeys = []string{"."}
	controller.Dispenser = caddyfile.NewDispenserTokens("cache", cacheSettings(ttl))
	if err := setup(controller); err != nil {
		return nil, fmt.Errorf("setting up the cache: %w", err)
	}
	built := dnsserver.GetConfig(controller).Plugin[0](next)
	return built.(*cache.Cache), nil
}

// cacheSettings caches answers for ttl, denials for five minutes at most, and failures not at all, so that a repaired upstream is used at once.
// Popular names are prefetched. If an upstream does not answer in 500 ms, its answer of the last day is served, with the TTL that RFC 8767 §4
// recommends.
func cacheSettings(ttl time.Duration) []caddyfile.Token {
	keep := strconv.Itoa(int(ttl.Seconds()))
	deny := strconv.Itoa(int(min(ttl, 5*time.Minute).Seconds()))
	return tokens([][]string{
		{"cache", keep, "{"},
		{"denial", "9984", deny},
		{"prefetch", "2", "60s", "10%"},
		{"serve_stale", "24h", "verify", "500ms", "30s", "5s"},
		{"servfail", "0s"},
		{"}"},
	})
}

func tokens(lines [][]string) (all []caddyfile.Token) {
	for i, line := range lines {
		for _, text := range line {
			all = append(all, caddyfile.Token{File: "cache", Line: i + 1, Text: text})
		}
	}
	return all
}
