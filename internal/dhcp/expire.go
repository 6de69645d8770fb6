package dhcp

import (
	"context"

	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// free makes writes that no client waits for. One that conflicts is decided anew at the next round of Expire.
func (s *Server) free(ctx context.Context, due []pool.Decision) {
	for _, d := range due {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		stored, err := s.put(ctx, d)
		if err == nil {
			s.Table.Learn(stored)
			s.follow(written{d, stored})
		} else {
			s.Log.Info("lease not written; trying later", "ip", d.IP, "why", d.Why, "error", err)
		}
		cancel()
	}
}

// Expire makes the writes that are due without a message.
func (s *Server) Expire(ctx context.Context) {
	now, _ := s.Clock.Now()
	if s.config.Load() == nil || !s.synced.Load() || now.IsZero() {
		return
	}
	s.confirmSuspects(ctx)
	s.free(ctx, s.Table.Expire(now))
}

// confirmSuspects reads the addresses for which the store told an older version than we know, while the store answers.
func (s *Server) confirmSuspects(ctx context.Context) {
	for _, ip := range s.Table.Suspects() {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		_, err := s.confirm(ctx, ip)
		cancel()
		if err != nil {
			s.Log.Info("lease not read; trying later", "ip", ip, "error", err)
			return
		}
	}
}
