package parts

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func FuzzParts(f *testing.F) {
	for _, text := range []string{`{}`, `[1,2]`, `{"a":"b,c","d\",":[{},{}]}`, `"\\",`, `{"a":"\\\",,","b":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			Of(text) // does not hang
			return
		}
		if want, got := commas(t, text), Of(text); want != got {
			t.Errorf("%s has %d commas between its parts, found %d", text, want, got)
		}
	})
}

// commas of JSON, by way of the library.
func commas(t *testing.T, text []byte) (n int) {
	t.Helper()
	type level struct {
		object bool
		tokens int
	}
	var in []level
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	close := func() {
		last := in[len(in)-1]
		in = in[:len(in)-1]
		if last.object {
			last.tokens /= 2
		}
		n += max(0, last.tokens-1)
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		end := token == json.Delim('}') || token == json.Delim(']')
		if !end && len(in) > 0 {
			in[len(in)-1].tokens++
		}
		switch {
		case end:
			close()
		case token == json.Delim('{'), token == json.Delim('['):
			in = append(in, level{object: token == json.Delim('{')})
		}
	}
}
