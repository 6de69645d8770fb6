package bridge

// StandIn is a payload for who does not download. Of two plans that have it, the templates that differ are those that differ in anything but
// the ignition; their text is not what it will be.
func (in Input) StandIn() Payload {
	if in.Download() == nil {
		return Payload{}
	}
	return Payload{Content: sample(false, 0).Ignition, Release: string(in.Bridge.Spec.OCPReleaseImage)}
}
