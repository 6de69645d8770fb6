package picture

import (
	"fmt"

	"github.com/cldmnky/oooi/internal/step"
)

// Drawing is the VLAN as lines and boxes, in the units of an SVG's viewBox.
type Drawing struct {
	Width, Height int
	VLAN          struct{ X, Y int }
	Lines         []Stroke
	Boxes         []Box
}

// Stroke connects two boxes.
type Stroke struct {
	X1, Y1, X2, Y2 int
	Outcome        step.Outcome
}

// Box with a text.
type Box struct {
	X, Y, W, H int
	Text       string
	Outcome    step.Outcome
}

// Where things are drawn, from left to right: workers, VLAN, services, upstreams.
const (
	margin, rowHeight, boxHeight   = 10, 34, 26
	workersWidth                   = 180
	vlanX                          = 250
	servicesX, servicesWidth       = 310, 260
	upstreamsX, upstreamsWidth     = 660, 290
	letterWidth, textX, textY      = 8, 8, 18
	drawingWidth                   = 960
	betweenServices, belowTheTitle = 12, 30
)

// TextX and TextY are where the text of a box begins.
func (b Box) TextX() int { return b.X + textX }

// TextY is its base line.
func (b Box) TextY() int { return b.Y + textY }

// Bottom is where the VLAN's line ends.
func (d Drawing) Bottom() int { return d.Height - margin }

// Drawing of the page.
func (p Page) Drawing() Drawing {
	d := Drawing{Width: drawingWidth}
	d.VLAN.X, d.VLAN.Y = vlanX, margin+belowTheTitle
	d.box(vlanX-80, margin, 160, p.CIDR, step.Skip)
	y, proxy := margin+belowTheTitle+betweenServices, 0
	workers := y
	for _, s := range p.Services {
		d.box(servicesX, y, servicesWidth, s.Name, s.Outcome)
		if s.Name == proxyName {
			proxy = y
		}
		d.line(vlanX, y, servicesX, y, s.Outcome)
		y += rowHeight
		for _, i := range s.Instances {
			d.box(servicesX+20, y, servicesWidth-20, placed(i), outcomeOf(i.Ready))
			d.line(vlanX, y, servicesX+20, y, outcomeOf(i.Ready))
			y += rowHeight
		}
		y += betweenServices
	}
	for i, u := range p.Upstreams {
		at := margin + belowTheTitle + betweenServices + i*rowHeight
		d.line(servicesX+servicesWidth, proxy, upstreamsX, at, u.Outcome())
		d.box(upstreamsX, at, upstreamsWidth, fmt.Sprintf("%s  %d/%d", u.Name, u.Healthy, u.Total), u.Outcome())
		y = max(y, at+rowHeight)
	}
	for _, s := range States {
		if n := p.Count[s]; n > 0 {
			d.box(margin, workers, workersWidth, fmt.Sprintf("%d %s", n, s), outcomes[s])
			d.line(margin+workersWidth, workers, vlanX, workers, outcomes[s])
			workers += rowHeight
		}
	}
	d.Height = max(y, workers) + margin
	return d
}

// outcomes are how a state is coloured.
var outcomes = map[State]step.Outcome{Joined: step.OK, Booting: step.Warn, Stopped: step.Fail, Partly: step.Unread}

func placed(i Instance) string {
	if i.Node == "" {
		return i.IP
	}
	return i.IP + " on " + i.Node
}

// box draws a text, as much of it as there is room for.
func (d *Drawing) box(x, y, width int, text string, outcome step.Outcome) {
	letters := []rune(step.Plain(text))
	if room := (width - 2*textX) / letterWidth; len(letters) > room {
		letters = append(letters[:room-1], '…')
	}
	d.Boxes = append(d.Boxes, Box{x, y, width, boxHeight, string(letters), outcome})
}

// line connects the middles of two boxes' sides, which are given by their tops.
func (d *Drawing) line(x1, y1, x2, y2 int, outcome step.Outcome) {
	d.Lines = append(d.Lines, Stroke{x1, y1 + boxHeight/2, x2, y2 + boxHeight/2, outcome})
}
