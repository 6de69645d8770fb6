package leaselog

import "slices"

// reclaim makes room on a full volume, where no second file fits beside the first: it gives up the parts of the file that are superseded. What
// memory has stays where it is, so that a power cut loses nothing.
func (l *Log) reclaim() error {
	content, err := l.disk.Read(l.path)
	if err != nil {
		return err
	}
	var entries []entry
	parse(content, func(e entry) { entries = append(entries, e) })
	live, dead := l.sorted(entries)
	if err := l.disk.Free(l.path, content, live, dead); err != nil {
		return err
	}
	l.log.Warn("the volume of the lease file is full: what is superseded was given up in the file itself", "file", l.path, "parts", len(dead))
	return nil
}

// sorted tells what memory has from what is superseded, or was written and refused afterwards.
func (l *Log) sorted(entries []entry) (live, dead []span) {
	clock := lastClock(entries)
	for i, e := range entries {
		record, known := l.records[e.address()]
		stands := e.Closed || i == clock ||
			e.Gone != "" && !known || e.Record != nil && known && record.Version == e.Record.Version
		if stands {
			live = appendSpan(live, e.at)
		} else {
			dead = appendSpan(dead, e.at)
		}
	}
	return live, dead
}

func lastClock(entries []entry) int {
	for i, e := range slices.Backward(entries) {
		if e.Clock != nil {
			return i
		}
	}
	return -1
}
