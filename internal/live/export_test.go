package live

import "time"

// SetWriting sets how long a browser may take to take what it is sent.
func (s *Server) SetWriting(is time.Duration) { s.writing = is }
