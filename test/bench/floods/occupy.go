package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// each does something a number of times a second until ctx ends, and says how often it did.
func each(ctx context.Context, second int, do func(n int)) (done int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return done
		case <-tick.C:
		}
		for due := int(time.Since(begun).Seconds() * float64(second)); done < due && ctx.Err() == nil; done++ {
			do(done)
		}
	}
}

// occupy keeps connections open, as many as it can. Each is used until the other side closes it, and opened again, but not sooner than this long
// after it was opened last.
func occupy(ctx context.Context, count int, again time.Duration, at string, use func(net.Conn)) (did string) {
	var open, most, opened, refused atomic.Int64
	connect := func() {
		conn, err := (&net.Dialer{Timeout: again}).DialContext(ctx, "tcp", at)
		if err != nil {
			refused.Add(1)
			return
		}
		ends := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer ends()
		defer conn.Close()
		opened.Add(1)
		for now := open.Add(1); ; {
			if was := most.Load(); was >= now || most.CompareAndSwap(was, now) {
				break
			}
		}
		defer open.Add(-1)
		use(conn)
	}
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			for next := time.Now().Add(again * time.Duration(i) / time.Duration(count)); pause(ctx, time.Until(next)) == nil; {
				next = time.Now().Add(again)
				connect()
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d opened, %d not, at most %d at a time", opened.Load(), refused.Load(), most.Load())
}
