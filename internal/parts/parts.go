// Package parts tells how much an object of somebody else's would take before it is decoded: three octets of JSON, {}, may become a
// struct of hundreds.
package parts

import "bytes"

// Of counts what JSON separates by commas; those in strings separate nothing. What is no JSON has any number.
func Of(object []byte) (n int) {
	for {
		quote := bytes.IndexByte(object, '"')
		if quote < 0 {
			return n + bytes.Count(object, []byte{','})
		}
		n += bytes.Count(object[:quote], []byte{','})
		object = object[quote+1:]
		for end := false; !end && len(object) > 0; {
			i := bytes.IndexAny(object, `"\`)
			if i < 0 {
				return n
			}
			end = object[i] == '"'
			object = object[min(i+1, len(object)):]
			if !end {
				object = object[min(1, len(object)):]
			}
		}
	}
}
